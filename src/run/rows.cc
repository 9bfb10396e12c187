#include "run/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/files.h"
#include "base/hash.h"
#include "model/verdict_json.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kRowsBytesMax = size_t{1} << 30;
constexpr const char* kSchema = "assay.run/1";

ErrorKind KindFromName(std::string_view name) {
  return name == "usage"         ? ErrorKind::kUsage
         : name == "interrupted" ? ErrorKind::kInterrupted
                                 : ErrorKind::kEnvironment;
}

}  // namespace

std::string RunKey(const RunPlan& plan, const RunItem& item, const std::string& settings) {
  const RunProblem& problem = plan.problems[item.problem];
  std::string text = fmt::format("{}\n{}\n{}\n{}\n{}\n{}", problem.name, problem.hash,
                                 problem.choice.size, item.sample, item.source.hash, settings);
  for (const auto& [name, value] : problem.choice.set) text += fmt::format("\n{}={}", name, value);
  return Sha256Hex(text);
}

RunRow RowOf(const RunPlan& plan, const RunItem& item, const std::string& settings) {
  const RunProblem& problem = plan.problems[item.problem];
  RunRow row;
  row.key = RunKey(plan, item, settings);
  row.level = problem.level;
  row.problem_number = problem.number;
  row.problem = problem.name;
  row.sample = item.sample;
  row.candidate = item.source.path;
  return row;
}

bool IsRunRow(std::string_view text) {
  return text.starts_with(fmt::format(R"({{"schema":"{}")", kSchema));
}

std::string RunRowToJson(const RunRow& row) {
  Json json = {{"schema", kSchema},
               {"key", row.key},
               {"date", row.date},
               {"level", row.level},
               {"number", row.problem_number},
               {"problem", row.problem},
               {"sample", row.sample},
               {"candidate", row.candidate}};
  if (row.verdict) json["verdict"] = Json::parse(VerdictToJson(*row.verdict, -1));
  if (row.error)
    json["error"] = {{"kind", ErrorKindName(row.error->kind)}, {"message", row.error->message}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<RunRow> RunRowFromJson(const std::string& line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return UsageError("not JSON");
  if (json.value("schema", "") != kSchema)
    return UsageError(fmt::format("its schema is not {}", kSchema));
  RunRow row;
  try {
    row.key = json.at("key").get<std::string>();
    row.date = json.at("date").get<std::string>();
    row.level = json.at("level").get<int>();
    row.problem_number = json.at("number").get<int64_t>();
    row.problem = json.at("problem").get<std::string>();
    row.sample = json.at("sample").get<int64_t>();
    row.candidate = json.at("candidate").get<std::string>();
    if (json.contains("error"))
      row.error = Error{KindFromName(json["error"].at("kind").get<std::string>()),
                        json["error"].at("message").get<std::string>()};
  } catch (const Json::exception& fault) {
    return UsageError(fmt::format("a field is missing or of the wrong kind: {}", fault.what()));
  }
  if (json.contains("verdict")) {
    ASSAY_ASSIGN_OR_RETURN(row.verdict, VerdictFromJson(json["verdict"].dump()));
  }
  if (row.verdict.has_value() == row.error.has_value())
    return UsageError("a row has either a verdict or an error");
  return row;
}

namespace {

bool IsJson(std::string_view text) { return Json::accept(text); }

Result<std::vector<RunRow>> ParseRunRows(const std::string& text, const std::string& path) {
  std::vector<RunRow> rows;
  ASSAY_RETURN_IF_ERROR(ForEachLine(text, path, IsJson, [&](std::string_view line) -> Result<void> {
    ASSAY_ASSIGN_OR_RETURN(RunRow row, RunRowFromJson(std::string(line)));
    rows.push_back(std::move(row));
    return {};
  }));
  return rows;
}

}  // namespace

Result<std::vector<RunRow>> ReadRunRows(const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kRowsBytesMax));
  return ParseRunRows(text, path);
}

Result<RunRows> RunRows::Open(const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(LineFile lines, LineFile::Open(path, "assay run", IsJson));
  RunRows rows(std::move(lines));
  ASSAY_ASSIGN_OR_RETURN(const std::string text, rows.file_.Read());
  ASSAY_ASSIGN_OR_RETURN(rows.rows_, ParseRunRows(text, path));
  return rows;
}

Result<void> RunRows::Append(std::vector<RunRow> rows) {
  if (rows.empty()) return {};
  std::string lines;
  for (const RunRow& row : rows) lines += (lines.empty() ? "" : "\n") + RunRowToJson(row);
  ASSAY_RETURN_IF_ERROR(file_.Append(lines));
  std::ranges::move(rows, std::back_inserter(rows_));
  return {};
}

std::vector<const RunRow*> RowsOfPlan(const RunPlan& plan, const std::vector<RunRow>& rows,
                                      const std::string& settings) {
  std::unordered_map<std::string_view, const RunRow*> newest;
  for (const RunRow& row : rows) {
    const RunRow*& known = newest[row.key];
    if (known == nullptr || row.verdict || !known->verdict) known = &row;
  }
  std::vector<const RunRow*> found;
  for (const RunItem& item : plan.items) {
    const auto row = newest.find(RunKey(plan, item, settings));
    found.push_back(row == newest.end() ? nullptr : row->second);
  }
  return found;
}

}  // namespace assay
