#include "run/run_record.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSchema = "assay.run_record/1";
constexpr size_t kBytesMax = size_t{64} << 20;

}  // namespace

std::string RunRecordText(const RunPlan& plan, const std::vector<AskedProblem>& before) {
  std::vector<AskedProblem> asked;
  const auto add = [&](const AskedProblem& problem) {
    const bool known = std::any_of(asked.begin(), asked.end(), [&](const AskedProblem& other) {
      return other.name == problem.name;
    });
    if (!known) asked.push_back(problem);
  };
  for (const RunProblem& problem : plan.problems)
    add({problem.name, problem.level, problem.mechanism});
  for (const AskedProblem& problem : before) add(problem);
  std::stable_sort(asked.begin(), asked.end(),
                   [](const auto& one, const auto& other) { return one.level < other.level; });
  Json json = {{"schema", kSchema}, {"problems", Json::array()}};
  for (const AskedProblem& problem : asked)
    json["problems"].push_back(
        {{"name", problem.name}, {"level", problem.level}, {"mechanism", problem.mechanism}});
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<std::vector<AskedProblem>> ReadRunRecord(const std::string& folder) {
  const std::filesystem::path path = std::filesystem::path(folder) / kRunRecordName;
  std::vector<AskedProblem> problems;
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return problems;
  ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kBytesMax));
  const Json json = Json::parse(text, nullptr, false);
  const auto refusal =
      UsageError(fmt::format("{} is not of assay run: move it away", path.string()));
  if (!json.is_object() || json.value("schema", Json()) != kSchema || !json.contains("problems") ||
      !json["problems"].is_array())
    return refusal;
  for (const Json& problem : json["problems"]) {
    if (!problem.is_object() || !problem.value("name", Json()).is_string() ||
        !problem.value("level", Json()).is_number_integer())
      return refusal;
    const Json mechanism = problem.value("mechanism", Json(""));
    if (!mechanism.is_string()) return refusal;
    problems.push_back({problem["name"].get<std::string>(), problem["level"].get<int>(),
                        mechanism.get<std::string>()});
  }
  return problems;
}

}  // namespace assay
