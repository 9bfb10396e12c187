#include "ladder/rows.h"

#include <fmt/format.h>

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

bool IsJson(std::string_view text) { return Json::accept(text); }

}  // namespace

std::string RowToJson(const LadderRow& row) {
  Json json = {{"judge", row.judge}, {"date", row.date}, {"ladder", row.ladder}};
  json.update(Json::parse(VerdictToJson(row.verdict, -1)));
  json.erase("samples");
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<std::vector<LadderRow>> ParseRows(std::string_view text, const std::string& path,
                                         const std::string& ladder) {
  std::vector<LadderRow> rows;
  ASSAY_RETURN_IF_ERROR(ForEachLine(text, path, IsJson, [&](std::string_view line) -> Result<void> {
    const Json json = Json::parse(line, nullptr, false);
    if (json.is_discarded()) return UsageError("not JSON");
    ASSAY_ASSIGN_OR_RETURN(std::optional<LadderRow> row, RowOf(json, ladder));
    if (row) rows.push_back(std::move(*row));
    return {};
  }));
  return rows;
}

Result<std::vector<LadderRow>> ReadRows(const std::string& path, const std::string& ladder) {
  ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kRowsBytesMax));
  return ParseRows(text, path, ladder);
}

Result<RowFile> RowFile::Open(const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(LineFile lines, LineFile::Open(path, "assay ladder", IsJson));
  RowFile file(std::move(lines));
  ASSAY_ASSIGN_OR_RETURN(const std::string text, file.file_.Read());
  ASSAY_ASSIGN_OR_RETURN(file.rows_, ParseRows(text, path, ""));
  return file;
}

Result<void> RowFile::Append(const LadderRow& row) {
  ASSAY_RETURN_IF_ERROR(file_.Append(RowToJson(row)));
  rows_.push_back(row);
  rows_.back().verdict.samples.clear();
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
