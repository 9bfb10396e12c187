#include "ladder/rows.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "model/verdict_json.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kRowsBytesMax = size_t{1} << 30;

// The row that a line holds; nullopt where it is another ladder's.
Result<std::optional<LadderRow>> RowOf(const Json& json, const std::string& ladder) {
  LadderRow row;
  for (const auto& [key, field] : {std::pair("judge", &row.judge), std::pair("date", &row.date),
                                   std::pair("ladder", &row.ladder)}) {
    const auto found = json.is_object() ? json.find(key) : json.end();
    if (found == json.end() || !found->is_string())
      return UsageError(fmt::format("{} is missing, or no text", key));
    *field = found->get<std::string>();
  }
  if (!ladder.empty() && row.ladder != ladder) return std::nullopt;
  Json verdict = json;
  verdict["samples"] = Json::array();
  ASSAY_ASSIGN_OR_RETURN(row.verdict, VerdictFromJson(verdict.dump()));
  return row;
}

}  // namespace

std::string RowToJson(const LadderRow& row) {
  Json json = {{"judge", row.judge}, {"date", row.date}, {"ladder", row.ladder}};
  json.update(Json::parse(VerdictToJson(row.verdict, -1)));
  json.erase("samples");
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<RowsRead> ParseRows(std::string_view text, const std::string& path,
                           const std::string& ladder) {
  RowsRead read;
  int number = 0;
  for (size_t at = 0; at < text.size();) {
    ++number;
    const size_t end = text.find('\n', at);
    const bool ended = end != std::string_view::npos;
    const std::string_view line = text.substr(at, ended ? end - at : end);
    const Json json = Json::parse(line, nullptr, false);
    if (json.is_discarded() && !ended) {
      read.torn = true;
      return read;
    }
    const auto row = json.is_discarded() ? UsageError("not JSON") : RowOf(json, ladder);
    if (!row)
      return UsageError(fmt::format("{} line {}: {}: mend or remove the line", path, number,
                                    row.error().message));
    if (*row) read.rows.push_back(std::move(**row));
    read.unended = !ended;
    at = ended ? end + 1 : text.size();
    read.whole_bytes = at;
  }
  return read;
}

Result<std::vector<LadderRow>> ReadRows(const std::string& path, const std::string& ladder) {
  ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kRowsBytesMax));
  ASSAY_ASSIGN_OR_RETURN(RowsRead read, ParseRows(text, path, ladder));
  return std::move(read.rows);
}

Result<RowFile> RowFile::Open(const std::string& path) {
  std::error_code code;
  if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty())
    std::filesystem::create_directories(folder, code);
  const auto failed = [&](std::string_view what) {
    return EnvironmentError(fmt::format("cannot {} {}: {}", what, path, std::strerror(errno)));
  };
  RowFile file(path, UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644)));
  if (file.fd_.get() < 0) return failed("open");
  if (::flock(file.fd_.get(), LOCK_EX | LOCK_NB) != 0)
    return EnvironmentError(
        fmt::format("{} is in use: another assay ladder adds to it; wait for its end, or give "
                    "another --out",
                    path));
  ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kRowsBytesMax));
  ASSAY_ASSIGN_OR_RETURN(RowsRead read, ParseRows(text, path, ""));
  file.rows_ = std::move(read.rows);
  file.was_torn_ = read.torn;
  if (read.torn && ::ftruncate(file.fd_.get(), static_cast<off_t>(read.whole_bytes)) != 0)
    return failed("cut the torn row off");
  if (read.unended) ASSAY_RETURN_IF_ERROR(file.Write("\n"));
  return file;
}

Result<void> RowFile::Append(const LadderRow& row) {
  ASSAY_RETURN_IF_ERROR(Write(RowToJson(row) + "\n"));
  if (::fdatasync(fd_.get()) != 0 && errno != EINVAL && errno != EROFS)
    return EnvironmentError(fmt::format("cannot flush {}: {}", path_, std::strerror(errno)));
  rows_.push_back(row);
  rows_.back().verdict.samples.clear();
  return {};
}

Result<void> RowFile::Write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = ::write(fd_.get(), text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0)
      return EnvironmentError(fmt::format("cannot write to {}: {}", path_, std::strerror(errno)));
    text.remove_prefix(static_cast<size_t>(size));
  }
  return {};
}

const LadderRow* FindRow(const std::vector<LadderRow>& rows, const RowKey& key) {
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    const Verdict& verdict = row->verdict;
    const std::string device = verdict.machine.gpu.empty() ? "cpu" : "cuda";
    const std::string& machine = device == "cpu" ? verdict.machine.cpu : verdict.machine.gpu;
    if (row->judge != key.judge || row->ladder != key.ladder || device != key.device) continue;
    if (verdict.candidate.hash != key.candidate_hash || verdict.problem.hash != key.problem_hash)
      continue;
    if (verdict.problem.set != key.set || verdict.machine.threads != key.threads) continue;
    const bool same_machine =
        key.machine.empty() || machine == key.machine || machine.starts_with(key.machine + " (");
    if (!same_machine) continue;
    const bool all = !verdict.speed || std::all_of(key.baselines.begin(), key.baselines.end(),
                                                   [&](const std::string& baseline) {
                                                     return SpeedOf(verdict, baseline).has_value();
                                                   });
    if (all) return &*row;
  }
  return nullptr;
}

std::optional<RungSpeed> SpeedOf(const Verdict& verdict, const std::string& baseline) {
  if (!verdict.speed) return std::nullopt;
  const auto found = verdict.speed->baselines.find(baseline);
  if (found == verdict.speed->baselines.end()) return std::nullopt;
  const BaselineResult& result = found->second;
  return RungSpeed{result.candidate_time_ns, result.time_ns,       100 * result.speedup,
                   100 * result.ci_low,      100 * result.ci_high, result.confidence};
}

}  // namespace assay
