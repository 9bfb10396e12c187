#include "search/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/hash.h"
#include "score/attempt.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

struct KindName {
  DatasetKind kind;
  std::string_view name;
};
constexpr KindName kKinds[] = {
    {DatasetKind::kVerified, "verified"},     {DatasetKind::kSft, "sft"},
    {DatasetKind::kPreference, "preference"}, {DatasetKind::kRl, "rl"},
    {DatasetKind::kFouls, "fouls"},           {DatasetKind::kKernelBook, "kernelbook"}};

constexpr const char* kNoReference = "the problem's file, which has moved or was changed";

// Names come from files that anybody may have written: bytes that are not UTF-8 become U+FFFD.
std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json TextOrNull(const std::string& text) { return text.empty() ? Json() : Json(text); }
Json NumberOrNull(const std::optional<double>& number) { return number ? Json(*number) : Json(); }

Json TaskOf(const ProblemRecord& problem, const DatasetTerms& terms) {
  return {{"name", problem.name},           {"hash", problem.hash},
          {"level", problem.level},         {"set", problem.set},
          {"signature", problem.signature}, {"split", SplitOf(problem, terms.test_share)}};
}

Json CandidateOf(const Sample& sample) {
  const CandidateRecord& candidate = sample.Counts().candidate;
  return {{"name", sample.name},
          {"form", CandidateFormName(candidate.form)},
          {"language", LanguageName(candidate.language)},
          {"hash", candidate.hash},
          {"source", sample.source}};
}

// A verdict's figures.
Json ResultOf(const Verdict& verdict) {
  const Attempt attempt = AttemptOf(verdict);
  const bool timed = attempt.speedup > 0 && attempt.ci_low > 0 && attempt.ci_high > 0;
  return {{"verdict", verdict.id},
          {"judged", verdict.created},
          {"outcome", OutcomeName(verdict.outcome)},
          {"correct", attempt.correct()},
          {"baseline", verdict.speed ? Json(verdict.speed->headline) : Json()},
          {"speedup", attempt.speedup > 0 ? Json(attempt.speedup) : Json()},
          {"interval", timed ? Json::array({attempt.ci_low, attempt.ci_high}) : Json()},
          {"certified_speedup", attempt.certified_speedup},
          {"processor", verdict.machine.gpu.empty() ? verdict.machine.cpu : verdict.machine.gpu},
          {"threads", verdict.machine.threads},
          {"toolchain", verdict.toolchain}};
}

Json OriginOf(const Sample& sample, const DatasetTerms& terms) {
  return {{"search", TextOrNull(sample.search)},
          {"step", TextOrNull(sample.key)},
          {"proposer", TextOrNull(sample.proposer)},
          {"model", TextOrNull(sample.model)},
          {"licence", TextOrNull(terms.licence)}};
}

Json QuestionOf(const Sample& sample) {
  Json messages = Json::array();
  if (!sample.system.empty()) messages.push_back({{"role", "system"}, {"content", sample.system}});
  messages.push_back({{"role", "user"}, {"content", sample.prompt}});
  return messages;
}

Json AnswerOf(const Sample& sample) { return {{"role", "assistant"}, {"content", sample.answer}}; }

bool WasAsked(const Sample& sample) { return !sample.prompt.empty() && !sample.answer.empty(); }

bool IsFoul(const Sample& sample) {
  return sample.verdict && sample.Counts().outcome == Outcome::kFoul;
}

bool IsVerified(const Sample& sample) {
  return sample.verdict && !sample.source.empty() && IsCorrect(sample.Counts().outcome);
}

// The newest verdict on each source at each problem and its constants, on each device.
std::vector<const Sample*> NewestOf(const std::vector<Sample>& samples,
                                    bool (*wanted)(const Sample&)) {
  std::map<std::tuple<std::string, std::map<std::string, std::string>, std::string, std::string>,
           const Sample*>
      newest;
  for (const Sample& sample : samples) {
    if (!wanted(sample)) continue;
    const Verdict& verdict = sample.Counts();
    const Sample*& kept =
        newest[{verdict.problem.hash, verdict.problem.set, Sha256Hex(sample.source),
                verdict.machine.gpu.empty() ? verdict.machine.cpu : verdict.machine.gpu}];
    if (kept == nullptr || verdict.created >= kept->Counts().created) kept = &sample;
  }
  std::set<const Sample*> chosen;
  for (const auto& [key, sample] : newest) chosen.insert(sample);
  std::vector<const Sample*> in_order;
  for (const Sample& sample : samples)
    if (chosen.contains(&sample)) in_order.push_back(&sample);
  return in_order;
}

Dataset Pairs(const std::vector<const Sample*>& samples, const DatasetTerms& terms,
              std::string_view schema) {
  Dataset dataset;
  for (const Sample* sample : samples) {
    const Verdict& verdict = sample->Counts();
    const auto reference = terms.reference(verdict.problem);
    if (!reference) {
      ++dataset.left_out;
      dataset.lacking = kNoReference;
      continue;
    }
    Json line = {{"schema", schema},
                 {"task", TaskOf(verdict.problem, terms)},
                 {"reference", *reference},
                 {"candidate", CandidateOf(*sample)},
                 {"result", ResultOf(verdict)},
                 {"origin", OriginOf(*sample, terms)}};
    if (verdict.foul) line["foul"] = {{"rule", verdict.foul->rule}, {"seen", verdict.foul->seen}};
    dataset.lines.push_back(Dump(line));
  }
  return dataset;
}

Dataset KernelBook(const std::vector<const Sample*>& samples, const DatasetTerms& terms) {
  Dataset dataset;
  for (const Sample* sample : samples) {
    const Verdict& verdict = sample->Counts();
    const auto reference = terms.reference(verdict.problem);
    if (!reference || verdict.candidate.language != Language::kPython) {
      ++dataset.left_out;
      dataset.lacking = reference ? "the form: KernelBook has Python alone" : kNoReference;
      continue;
    }
    dataset.lines.push_back(
        Dump({{"entry_point", "Model"},
              {"python_code", *reference},
              {"triton_code", sample->source},
              {"original_triton_code", sample->source},
              {"repo_name", ""},
              {"repo_link", ""},
              {"module_name", verdict.problem.name},
              {"licenses", terms.licence.empty() ? Json::array() : Json::array({terms.licence})},
              {"stars", 0},
              {"sha", verdict.problem.hash},
              {"uuid", static_cast<int64_t>(dataset.lines.size())},
              {"synthetic", !sample->model.empty()}}));
  }
  return dataset;
}

Dataset Sft(const std::vector<Sample>& samples, const DatasetTerms& terms) {
  Dataset dataset;
  std::set<std::string> known;
  for (const Sample& sample : samples) {
    if (!sample.verdict || sample.search.empty() || sample.key.starts_with("confirm/")) continue;
    const Verdict& verdict = sample.Counts();
    if (verdict.outcome == Outcome::kFoul || !Qualifies(AttemptOf(verdict), terms.rewards.p, true))
      continue;
    if (!WasAsked(sample)) {
      ++dataset.left_out;
      dataset.lacking = "a prompt: no model was asked";
      continue;
    }
    if (!known.insert(Sha256Hex(sample.system + sample.prompt + sample.answer)).second) continue;
    Json messages = QuestionOf(sample);
    messages.push_back(AnswerOf(sample));
    dataset.lines.push_back(Dump({{"schema", "assay.sft/1"},
                                  {"task", TaskOf(verdict.problem, terms)},
                                  {"messages", messages},
                                  {"result", ResultOf(verdict)},
                                  {"origin", OriginOf(sample, terms)}}));
  }
  return dataset;
}

// Why the first is better; empty: it is not, or that cannot be told.
std::string_view Better(const Sample& one, const Sample& other) {
  const Attempt better = AttemptOf(one.Counts()), worse = AttemptOf(other.Counts());
  if (!better.correct()) return {};
  if (!worse.correct()) return "correct over wrong";
  return better.ci_low > 0 && better.ci_low > worse.ci_high && worse.ci_high > 0
             ? "faster over slower"
             : std::string_view();
}

Dataset Preference(const std::vector<Sample>& samples, const DatasetTerms& terms) {
  constexpr size_t kPairsMax = 16;  // a prompt
  std::map<std::string, std::vector<const Sample*>> by_prompt;
  std::vector<std::string> order;
  for (const Sample& sample : samples) {
    if (!sample.verdict || !WasAsked(sample) || IsFoul(sample) ||
        sample.Counts().outcome == Outcome::kUnsettled)
      continue;
    const std::string prompt =
        Sha256Hex(sample.Counts().problem.hash + "\n" + sample.system + "\n" + sample.prompt);
    auto& group = by_prompt[prompt];
    if (group.empty()) order.push_back(prompt);
    const bool known = std::ranges::any_of(
        group, [&](const Sample* other) { return other->answer == sample.answer; });
    if (!known) group.push_back(&sample);
  }
  Dataset dataset;
  for (const std::string& prompt : order) {
    const auto& group = by_prompt.at(prompt);
    size_t pairs = 0;
    for (const Sample* chosen : group) {
      for (const Sample* rejected : group) {
        const std::string_view reason = Better(*chosen, *rejected);
        if (reason.empty() || pairs == kPairsMax) continue;
        ++pairs;
        dataset.lines.push_back(Dump({{"schema", "assay.preference/1"},
                                      {"task", TaskOf(chosen->Counts().problem, terms)},
                                      {"prompt", QuestionOf(*chosen)},
                                      {"chosen", Json::array({AnswerOf(*chosen)})},
                                      {"rejected", Json::array({AnswerOf(*rejected)})},
                                      {"reason", reason},
                                      {"chosen_result", ResultOf(chosen->Counts())},
                                      {"rejected_result", ResultOf(rejected->Counts())},
                                      {"chosen_origin", OriginOf(*chosen, terms)},
                                      {"rejected_origin", OriginOf(*rejected, terms)}}));
      }
    }
  }
  return dataset;
}

// An answer without code is no candidate, and so not correct.
std::optional<double> TurnReward(const Sample& sample, const RewardRules& rules) {
  if (sample.verdict) return RewardOf(sample.Counts(), rules);
  if (sample.source.empty()) return 0;
  return std::nullopt;
}

std::optional<Json> Chain(const std::vector<const Sample*>& turns, const DatasetTerms& terms) {
  const auto judged =
      std::ranges::find_if(turns, [](const Sample* turn) { return turn->verdict.has_value(); });
  if (judged == turns.end()) return std::nullopt;  // nothing says which problem it was
  std::vector<std::optional<double>> rewards;
  for (const Sample* turn : turns) rewards.push_back(TurnReward(*turn, terms.rewards));
  const auto returns = ReturnsOf(rewards, terms.rewards.gamma);
  Json lines = Json::array();
  for (size_t i = 0; i < turns.size(); ++i)
    lines.push_back({{"prompt", QuestionOf(*turns[i])},
                     {"answer", turns[i]->answer},
                     {"reward", NumberOrNull(rewards[i])},
                     {"return", NumberOrNull(returns[i])},
                     {"result", turns[i]->verdict ? ResultOf(turns[i]->Counts()) : Json()},
                     {"origin", OriginOf(*turns[i], terms)}});
  return Json{{"schema", "assay.rl/1"},
              {"task", TaskOf((*judged)->Counts().problem, terms)},
              {"formula", RewardFormulaName(terms.rewards.formula)},
              {"p", terms.rewards.p},
              {"gamma", terms.rewards.gamma},
              {"turns", lines}};
}

// A chain leads from a question without a parent to an answer that no other question is about.
Dataset Rl(const std::vector<Sample>& samples, const DatasetTerms& terms) {
  std::map<std::pair<std::string, std::string>, const Sample*> by_key;
  std::set<std::pair<std::string, std::string>> parents;
  for (const Sample& sample : samples) {
    if (!WasAsked(sample)) continue;
    by_key[{sample.search, sample.key}] = &sample;
    parents.insert({sample.search, sample.parent});
  }
  Dataset dataset;
  for (const Sample& sample : samples) {
    if (!WasAsked(sample) || parents.contains({sample.search, sample.key})) continue;
    std::vector<const Sample*> turns;
    for (const Sample* turn = &sample; turn != nullptr && turns.size() <= by_key.size();) {
      turns.insert(turns.begin(), turn);
      const auto parent = by_key.find({turn->search, turn->parent});
      turn = parent == by_key.end() ? nullptr : parent->second;
    }
    if (const auto line = Chain(turns, terms)) {
      dataset.lines.push_back(Dump(*line));
    } else {
      ++dataset.left_out;
      dataset.lacking = "a verdict: no turn was judged";
    }
  }
  return dataset;
}

}  // namespace

Result<DatasetKind> DatasetKindFromName(std::string_view name) {
  for (const KindName& each : kKinds)
    if (each.name == name) return each.kind;
  return UsageError(
      fmt::format("--as {}: give one of verified, sft, preference, rl, fouls, kernelbook", name));
}

std::string_view SplitOf(const ProblemRecord& problem, double test_share) {
  constexpr size_t kDigits = 8;
  constexpr double kRange = 4294967296.0;  // 16^8
  uint64_t number = 0;
  std::from_chars(problem.hash.data(), problem.hash.data() + std::min(problem.hash.size(), kDigits),
                  number, 16);
  return static_cast<double>(number) / kRange < test_share ? "test" : "train";
}

Dataset MakeDataset(DatasetKind kind, const std::vector<Sample>& samples,
                    const DatasetTerms& terms) {
  switch (kind) {
    case DatasetKind::kVerified:
      return Pairs(NewestOf(samples, IsVerified), terms, "assay.verified/1");
    case DatasetKind::kFouls:
      return Pairs(NewestOf(samples, IsFoul), terms, "assay.foul/1");
    case DatasetKind::kKernelBook:
      return KernelBook(NewestOf(samples, IsVerified), terms);
    case DatasetKind::kSft:
      return Sft(samples, terms);
    case DatasetKind::kPreference:
      return Preference(samples, terms);
    case DatasetKind::kRl:
      return Rl(samples, terms);
  }
  return {};
}

}  // namespace assay
