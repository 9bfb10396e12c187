#include "run/eval_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "score/attempt.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kJudge = "assay";

// As KernelBench counts: weights may be prepared once.
bool CountsAsCorrect(const Verdict& verdict) {
  return IsCorrect(verdict.outcome) || RightWithPreparedWeights(verdict);
}

// A call's time in each pair of the headline baseline [ms]: the mean of the candidate's blocks.
std::vector<double> PairTimesMs(const Verdict& verdict) {
  std::vector<double> times;
  if (!verdict.speed) return times;
  const auto headline = verdict.speed->baselines.find(verdict.speed->headline);
  if (headline == verdict.speed->baselines.end() || headline->second.calls_per_block <= 0)
    return times;
  for (const PairSamples& pair : verdict.samples) {
    if (pair.baseline != verdict.speed->headline) continue;
    double sum_ns = 0;
    int blocks = 0;
    for (size_t i = 0; i < pair.block_ns.size() && i < pair.order.size(); ++i) {
      if (pair.order[i] != 'c') continue;
      sum_ns += static_cast<double>(pair.block_ns[i]);
      ++blocks;
    }
    if (blocks > 0) times.push_back(sum_ns / blocks / headline->second.calls_per_block / 1e6);
  }
  return times;
}

Json StatsOf(const Verdict& verdict) {
  const std::vector<double> times = PairTimesMs(verdict);
  if (times.empty()) return Json::object();
  const auto count = static_cast<double>(times.size());
  double sum = 0, squares = 0;
  for (const double time : times) sum += time;
  const double mean = sum / count;
  for (const double time : times) squares += (time - mean) * (time - mean);
  const auto [least, most] = std::minmax_element(times.begin(), times.end());
  return {{"mean", mean},
          {"std", std::sqrt(squares / count)},
          {"min", *least},
          {"max", *most},
          {"num_trials", times.size()},
          {"hardware", verdict.machine.gpu.empty() ? verdict.machine.cpu : verdict.machine.gpu},
          {"device", verdict.machine.gpu.empty() ? "cpu" : "cuda"}};
}

Json MetadataOf(const Verdict& verdict) {
  Json metadata = {
      {"judge", kJudge},
      {"outcome", OutcomeName(verdict.outcome)},
      {"message", verdict.message},
      {"hardware", verdict.machine.gpu.empty() ? verdict.machine.cpu : verdict.machine.gpu}};
  const Reached reached =
      CountsAsCorrect(verdict) ? Reached::kCorrect : FactsOf(verdict.outcome).reached;
  if (RightWithPreparedWeights(verdict))
    metadata["right_with_weights"] = WeightsKindName(*verdict.correctness->right_with_weights);
  if (reached == Reached::kNothing) metadata["compilation_error"] = verdict.message;
  if (reached == Reached::kBuilt) metadata["runtime_error"] = verdict.message;
  if (reached == Reached::kRan) metadata["correctness_issue"] = verdict.message;
  if (verdict.speed) {
    const auto headline = verdict.speed->baselines.find(verdict.speed->headline);
    if (headline != verdict.speed->baselines.end()) {
      metadata["baseline"] = verdict.speed->headline;
      metadata["baseline_runtime"] = headline->second.time_ns / 1e6;
      metadata["speedup"] = headline->second.speedup;
      metadata["certified_speedup"] = headline->second.certified_speedup;
    }
  }
  return metadata;
}

double RuntimeMs(const Verdict& verdict) {
  if (!verdict.speed || !IsCorrect(verdict.outcome)) return -1;
  const auto headline = verdict.speed->baselines.find(verdict.speed->headline);
  return headline == verdict.speed->baselines.end() ? -1 : headline->second.candidate_time_ns / 1e6;
}

bool IsUntimed(const Verdict& verdict) {
  return CountsAsCorrect(verdict) && RuntimeMs(verdict) < 0;
}

std::string NameOfRow(const RunRow& row) { return fmt::format("{} #{}", row.problem, row.sample); }

std::string Describe(bool compiled, bool correct, double runtime_ms) {
  if (!compiled) return "not compiled";
  if (!correct) return "not correct";
  return runtime_ms < 0 ? "correct" : fmt::format("correct, {:.3g} ms", runtime_ms);
}

}  // namespace

std::string EvalResultsText(const std::vector<const RunRow*>& rows) {
  std::vector<const RunRow*> sorted;
  for (const RunRow* row : rows)
    if (row != nullptr && row->verdict && !IsUntimed(*row->verdict)) sorted.push_back(row);
  std::stable_sort(sorted.begin(), sorted.end(), [](const RunRow* one, const RunRow* other) {
    return std::pair(one->problem_number, one->sample) <
           std::pair(other->problem_number, other->sample);
  });
  Json results = Json::object();
  for (const RunRow* row : sorted) {
    const Verdict& verdict = *row->verdict;
    const std::string key =
        row->problem_number > 0 ? std::to_string(row->problem_number) : row->problem;
    Json& samples = results[key];
    if (samples.is_null()) samples = Json::array();
    samples.push_back({{"sample_id", row->sample},
                       {"compiled", FactsOf(verdict.outcome).reached != Reached::kNothing},
                       {"correctness", CountsAsCorrect(verdict)},
                       {"metadata", MetadataOf(verdict)},
                       {"runtime", RuntimeMs(verdict)},
                       {"runtime_stats", StatsOf(verdict)}});
  }
  return results.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<std::string> UntimedSamples(const std::vector<const RunRow*>& rows) {
  std::vector<std::string> names;
  for (const RunRow* row : rows)
    if (row != nullptr && row->verdict && IsUntimed(*row->verdict))
      names.push_back(NameOfRow(*row));
  return names;
}

Result<EvalResults> ReadEvalResults(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return UsageError("not KernelBench's results: no JSON object");
  EvalResults results;
  for (const auto& [key, value] : json.items()) {
    int64_t problem = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), problem);
    const bool number = error == std::errc() && end == key.data() + key.size();
    const Json list = value.is_array() ? value : Json::array({value});
    for (const Json& sample : list) {
      if (!sample.is_object())
        return UsageError(fmt::format("not KernelBench's results: '{}' holds no sample", key));
      if (const Json metadata = sample.value("metadata", Json::object());
          metadata.is_object() && metadata.value("judge", Json()) == kJudge)
        results.ours = true;
      if (!number) continue;
      const auto flag = [&](const char* name) {
        return sample.contains(name) && sample[name].is_boolean() && sample[name].get<bool>();
      };
      const auto of = [&](const char* name, double otherwise) {
        return sample.contains(name) && sample[name].is_number() ? sample[name].get<double>()
                                                                 : otherwise;
      };
      results.samples[{problem, static_cast<int64_t>(of("sample_id", 0))}] = {
          flag("compiled"), flag("correctness"), of("runtime", -1)};
    }
  }
  return results;
}

std::vector<std::string> Disagreements(const EvalResults& theirs,
                                       const std::vector<const RunRow*>& rows) {
  std::vector<std::string> lines;
  for (const RunRow* row : rows) {
    if (row == nullptr || !row->verdict) continue;
    const auto found = theirs.samples.find({row->problem_number, row->sample});
    if (found == theirs.samples.end()) continue;
    const Verdict& verdict = *row->verdict;
    const bool compiled = FactsOf(verdict.outcome).reached != Reached::kNothing;
    const bool correct = CountsAsCorrect(verdict);
    if (found->second.compiled == compiled && found->second.correct == correct) continue;
    lines.push_back(fmt::format(
        "{}: theirs {}; ours {}{}", NameOfRow(*row),
        Describe(found->second.compiled, found->second.correct, found->second.runtime_ms),
        Describe(compiled, correct, RuntimeMs(verdict)),
        correct ? "" : fmt::format(": {}: {}", OutcomeName(verdict.outcome), verdict.message)));
  }
  return lines;
}

}  // namespace assay
