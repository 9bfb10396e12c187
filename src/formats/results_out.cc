#include "formats/results_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

std::string Dump(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

const BaselineResult* Headline(const Verdict& verdict) {
  if (!verdict.speed) return nullptr;
  const auto found = verdict.speed->baselines.find(verdict.speed->headline);
  return found == verdict.speed->baselines.end() ? nullptr : &found->second;
}

// A call's times in the candidate's blocks of the deciding baseline [ns].
std::vector<double> CallTimes(const Verdict& verdict) {
  std::vector<double> times;
  const BaselineResult* const headline = Headline(verdict);
  if (headline == nullptr || headline->calls_per_block <= 0) return times;
  for (const PairSamples& pair : verdict.samples) {
    if (pair.baseline != verdict.speed->headline) continue;
    for (size_t i = 0; i < pair.block_ns.size() && i < pair.order.size(); ++i)
      if (pair.order[i] == 'c')
        times.push_back(static_cast<double>(pair.block_ns[i]) / headline->calls_per_block);
  }
  return times;
}

std::string Hardware(const Verdict& verdict) {
  return verdict.machine.gpu.empty() ? verdict.machine.cpu : verdict.machine.gpu;
}

std::string_view TraceStatus(const Verdict& verdict, bool sol) {
  switch (verdict.outcome) {
    case Outcome::kFaster:
    case Outcome::kSlower:
    case Outcome::kTie:
    case Outcome::kNotFaster:
    case Outcome::kCorrect:
    case Outcome::kUnsettled:
      return "PASSED";
    case Outcome::kWrong:
    case Outcome::kWeightsDiffer:
      return "INCORRECT_NUMERICAL";
    case Outcome::kBuildFailed:
      return "COMPILE_ERROR";
    case Outcome::kTimedOut:
      return "TIMEOUT";
    case Outcome::kFoul:
      return sol ? "REWARD_HACK" : "RUNTIME_ERROR";
    case Outcome::kCrashed:
    case Outcome::kOutOfMemory:
      return "RUNTIME_ERROR";
  }
  return "RUNTIME_ERROR";
}

// The trace's times are those that were measured: null where none was.
Json Performance(const Verdict& verdict) {
  const BaselineResult* const headline = Headline(verdict);
  if (headline == nullptr || headline->candidate_time_ns <= 0) return nullptr;
  return {{"latency_ms", headline->candidate_time_ns / 1e6},
          {"reference_latency_ms", headline->time_ns / 1e6},
          {"speedup_factor", headline->speedup}};
}

Json Evaluation(const Verdict& verdict, bool sol) {
  const std::string_view status = TraceStatus(verdict, sol);
  Json correctness;
  if (verdict.correctness && (status == "PASSED" || status == "INCORRECT_NUMERICAL"))
    correctness = {{"max_absolute_error", verdict.correctness->max_abs_error},
                   {"extra", {{"error_ratio", verdict.correctness->error_ratio}}}};
  Json libraries = Json::object();
  for (const auto& [name, version] : verdict.toolchain) libraries[name] = version;
  return {{"status", status},
          {"log", fmt::format("{}: {}", OutcomeName(verdict.outcome), verdict.message)},
          {"correctness", correctness},
          {"performance", status == "PASSED" ? Performance(verdict) : Json()},
          {"environment", {{"hardware", Hardware(verdict)}, {"libs", libraries}}},
          {"timestamp", verdict.created}};
}

// A part of a path: what comes from a foreign file names no folder above the export.
std::string PathPart(const Json& origin, const char* key) {
  std::string part = origin.value(key, "unknown");
  for (char& c : part)
    if (c == '/' || c == '\\' || c == '\0') c = '_';
  return part.empty() || part == "." || part == ".." ? "unknown" : part;
}

std::string FileName(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

}  // namespace

Result<std::vector<JudgedImport>> PairWithOrigins(const std::vector<RunRow>& rows,
                                                  const std::string& origins) {
  std::map<std::string, const RunRow*> newest;
  for (const RunRow& row : rows) {
    const RunRow*& place = newest[FileName(row.candidate)];
    if (place == nullptr || row.verdict || !place->verdict) place = &row;
  }
  std::vector<JudgedImport> judged;
  std::istringstream lines(origins);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("candidate") || !json["candidate"].is_string() ||
        !json.contains("origin") || !json["origin"].is_object())
      return UsageError(fmt::format(
          "line {} of the origins has no candidate or no origin: import the folder again", number));
    const auto row = newest.find(FileName(json["candidate"].get<std::string>()));
    if (row != newest.end()) judged.push_back({row->second, json["origin"].dump()});
  }
  return judged;
}

ExportedFiles FlashInferTraces(const std::vector<JudgedImport>& judged) {
  ExportedFiles files;
  for (const JudgedImport& each : judged) {
    const Json origin = Json::parse(each.origin);
    if (origin.value("format", "") != "flashinfer" || !each.row->verdict) continue;
    const Json trace = {{"definition", origin["definition"]},
                        {"workload", origin["workload"]},
                        {"solution", origin["solution"]},
                        {"evaluation", Evaluation(*each.row->verdict,
                                                  origin.value("layout", "") == "sol-execbench")}};
    files[fmt::format("traces/{}/{}/{}.jsonl", PathPart(origin, "author"),
                      PathPart(origin, "op_type"), PathPart(origin, "definition"))] +=
        Dump(trace) + "\n";
  }
  return files;
}

namespace {

struct Case {
  Json origin;
  const Verdict* verdict;
};

// A run of `mode` "test" or "benchmark": pairs of key and value, as the evaluator writes them.
Json ModeRun(const std::string& mode, const std::vector<Case>& cases) {
  Json result = {{mode + "-count", std::to_string(cases.size())}};
  bool passed = true;
  double seconds = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Verdict& verdict = *cases[i].verdict;
    const std::string key = fmt::format("{}.{}.", mode, i);
    const bool correct = IsCorrect(verdict.outcome);
    passed = passed && correct;
    seconds += verdict.cost.total_s;
    result[key + "spec"] = cases[i].origin.value("spec", "");
    result[key + "status"] = correct ? "pass" : "fail";
    if (!correct) result[key + "error"] = verdict.message;
    const std::vector<double> times = CallTimes(verdict);
    if (mode != "benchmark" || times.empty()) continue;
    const auto count = static_cast<double>(times.size());
    double sum = 0, squares = 0;
    for (const double time : times) sum += time;
    for (const double time : times) squares += (time - sum / count) * (time - sum / count);
    const double deviation = count > 1 ? std::sqrt(squares / (count - 1)) : 0;
    const auto [best, worst] = std::minmax_element(times.begin(), times.end());
    result[key + "runs"] = std::to_string(times.size());
    result[key + "mean"] = fmt::format("{}", sum / count);
    result[key + "std"] = fmt::format("{}", deviation);
    result[key + "err"] = fmt::format("{}", deviation / std::sqrt(count));
    result[key + "best"] = fmt::format("{}", *best);
    result[key + "worst"] = fmt::format("{}", *worst);
  }
  result["check"] = passed ? "pass" : "fail";
  const std::string created = cases.front().verdict->created;
  return {{"start", created},
          {"end", cases.back().verdict->created},
          {"compilation", nullptr},
          {"run",
           {{"success", true},
            {"passed", passed},
            {"command", "assay run"},
            {"stdout", ""},
            {"stderr", ""},
            {"exit_code", passed ? 0 : 1},
            {"duration", seconds},
            {"result", result}}},
          {"profile", nullptr}};
}

}  // namespace

ExportedFiles PopcornResults(const std::vector<JudgedImport>& judged) {
  std::map<std::string, std::vector<Case>> submissions;
  for (const JudgedImport& each : judged) {
    Json origin = Json::parse(each.origin);
    if (origin.value("format", "") != "popcorn" || !each.row->verdict) continue;
    submissions[origin.value("submission", "")].push_back({std::move(origin), &*each.row->verdict});
  }
  ExportedFiles files;
  for (const auto& [submission, cases] : submissions) {
    const Verdict& first = *cases.front().verdict;
    const auto torch = first.toolchain.find("pytorch");
    const Json result = {
        {"success", true},
        {"error", ""},
        {"system",
         {{"gpu", first.machine.gpu},
          {"device_count", first.machine.gpu.empty() ? 0 : 1},
          {"cpu", first.machine.cpu},
          {"runtime", first.machine.gpu.empty() ? "CPU" : "CUDA"},
          {"platform", first.machine.kernel},
          {"torch", torch == first.toolchain.end() ? Json() : Json(torch->second)},
          {"hostname", ""}}},
        {"runs", {{"test", ModeRun("test", cases)}, {"benchmark", ModeRun("benchmark", cases)}}}};
    std::string name = std::filesystem::path(submission).stem().string();
    std::string path = fmt::format("results/{}.json", name);
    for (int number = 2; files.contains(path); ++number)
      path = fmt::format("results/{}_{}.json", name, number);
    files[path] = Dump(result, 2) + "\n";
  }
  return files;
}

}  // namespace assay
