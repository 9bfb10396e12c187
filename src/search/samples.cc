// Theory of operation. A verdict's record makes a sample. A search's records tell more: the step
// that judged a candidate names the step that asked for it, whose intent has the prompt and whose
// result has the answer. An answer to which a later question refers, and that nothing judged, had
// no code.
#include "search/samples.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "model/verdict_json.h"

namespace assay {
namespace {

using Json = nlohmann::json;

using StepKey = std::pair<std::string, std::string>;  // of the search, of the step

struct SearchStep {
  std::string kind;  // "propose", "judge", "confirm"
  std::vector<std::string> parents;
  std::string name, source_hash;  // of the candidate
  std::string system, prompt;
  // Of its result.
  bool answered = false;
  std::string answer, model;
  std::string verdict_id, duplicate_of;
  bool failed = false;  // an error stands in the verdict's place
};

class Reader {
 public:
  Reader(Store& store, const std::function<void(const std::string&)>& notice)
      : store_(store), notice_(notice) {}

  Result<std::vector<Sample>> Read() {
    const auto leave_out = [&](int64_t sequence, const Error& error) {
      notice_(fmt::format("record {} is left out: {}", sequence, error.message));
      return true;
    };
    ASSAY_RETURN_IF_ERROR(ForEachRecord(
        store_,
        [&](const Record& record) {
          const auto taken = Take(record);
          return taken || leave_out(record.sequence, taken.error());
        },
        leave_out));
    Confirm();
    for (const StepKey& key : order_) AddStep(key);
    for (const StepKey& key : order_) DescribeConfirmation(key);
    AddAnswersWithoutCode();
    return std::move(samples_);
  }

 private:
  Result<void> Take(const Record& record) {
    switch (record.facts.kind) {
      case RecordKind::kVerdict:
        return TakeVerdict(record);
      case RecordKind::kSearch:
      case RecordKind::kStep:
      case RecordKind::kResult:
        return TakeSearch(record);
      default:
        return {};
    }
  }

  Result<void> TakeVerdict(const Record& record) {
    ASSAY_ASSIGN_OR_RETURN(const std::string content, store_.Get(record.content));
    Sample sample;
    ASSAY_ASSIGN_OR_RETURN(sample.verdict, VerdictFromJson(content));
    sample.name = record.facts.name;
    if (record.source.empty()) return {};  // nothing to learn from
    ASSAY_ASSIGN_OR_RETURN(sample.source, store_.Get(record.source));
    of_verdict_.try_emplace(sample.verdict->id, samples_.size());
    samples_.push_back(std::move(sample));
    return {};
  }

  Result<void> TakeSearch(const Record& record) {
    ASSAY_ASSIGN_OR_RETURN(const std::string content, store_.Get(record.content));
    const Json json = Json::parse(content, nullptr, false);
    if (!json.is_object()) return EnvironmentError("it is no JSON object");
    try {
      const std::string search = json.value("search", "");
      if (record.facts.kind == RecordKind::kSearch)
        proposers_[search] = json.value("proposer", "");
      else if (record.facts.kind == RecordKind::kStep)
        TakeIntent(record, search, json);
      else
        TakeResult(search, json);
    } catch (const Json::exception& error) {
      return EnvironmentError(error.what());
    }
    return {};
  }

  void TakeIntent(const Record& record, const std::string& search, const Json& json) {
    const StepKey key{search, json.value("key", "")};
    if (!steps_.contains(key)) order_.push_back(key);
    SearchStep& step = steps_[key];
    step.kind = json.value("kind", "");
    step.parents = json.value("parents", std::vector<std::string>());
    step.name = json.value("candidate", "");
    step.source_hash = record.source;
    if (json.contains("prompt")) {
      step.system = json["prompt"].value("system", "");
      step.prompt = json["prompt"].value("text", "");
    }
  }

  void TakeResult(const std::string& search, const Json& json) {
    const auto found = steps_.find({search, json.value("key", "")});
    if (found == steps_.end()) return;  // a person's wish, or an intent that could not be read
    SearchStep& step = found->second;
    if (json.contains("answer")) {
      step.answered = true;
      step.answer = json["answer"].value("text", "");
      step.model = json["answer"].value("model", "");
    }
    step.verdict_id = json.value("verdict_id", "");
    step.duplicate_of = json.value("duplicate_of", "");
    step.failed = json.contains("error") || (!step.duplicate_of.empty() && step.verdict_id.empty());
  }

  // The sample of a step's verdict; null: it has none.
  Sample* SampleOf(const SearchStep& step) {
    const auto found = of_verdict_.find(step.verdict_id);
    return found == of_verdict_.end() ? nullptr : &samples_[found->second];
  }

  void Confirm() {
    for (const auto& [key, step] : steps_) {
      const Sample* sample = SampleOf(step);
      if (step.kind == "confirm" && sample != nullptr)
        confirmed_[{key.first, step.source_hash}] = *sample->verdict;
    }
  }

  void AddStep(const StepKey& key) {
    const SearchStep& step = steps_.at(key);
    if (step.kind != "judge") return;
    Sample* of_verdict = SampleOf(step);
    if (of_verdict == nullptr && !step.failed) return;  // still in hand
    Sample sample = of_verdict != nullptr ? *of_verdict : Sample();
    sample.name = step.name;
    sample.search = key.first;
    sample.key = key.second;
    sample.proposer = proposers_[key.first];
    // A duplicate may differ in its comments.
    if (auto source = store_.Get(step.source_hash)) sample.source = std::move(*source);
    if (const auto again = confirmed_.find({key.first, step.source_hash});
        again != confirmed_.end())
      sample.confirmed = again->second;
    TakeQuestion(key.first, step, &sample);
    // The verdict's own place, once; a duplicate has one of its own.
    if (of_verdict != nullptr && of_verdict->search.empty())
      *of_verdict = std::move(sample);
    else
      samples_.push_back(std::move(sample));
  }

  // The second judgement of a finalist has a verdict of its own.
  void DescribeConfirmation(const StepKey& key) {
    const SearchStep& step = steps_.at(key);
    Sample* sample = SampleOf(step);
    if (step.kind != "confirm" || sample == nullptr || !sample->search.empty()) return;
    sample->search = key.first;
    sample->key = key.second;
    sample->proposer = proposers_[key.first];
    sample->parent = step.parents.empty() ? "" : step.parents.front();
    const auto judged = steps_.find({key.first, sample->parent});
    if (judged == steps_.end()) return;
    for (const std::string& parent : judged->second.parents)
      if (const auto question = steps_.find({key.first, parent}); question != steps_.end())
        sample->model = question->second.model;
  }

  // The prompt and the answer that a candidate came from.
  void TakeQuestion(const std::string& search, const SearchStep& step, Sample* sample) {
    for (const std::string& parent : step.parents) {
      const auto question = steps_.find({search, parent});
      if (question == steps_.end()) continue;
      if (question->second.kind != "propose") {
        if (sample->parent.empty()) sample->parent = parent;
        continue;
      }
      Describe(question->second, sample);
      judged_.insert(question->first);
    }
  }

  static void Describe(const SearchStep& question, Sample* sample) {
    sample->system = question.system;
    sample->prompt = question.prompt;
    sample->answer = question.answer;
    sample->model = question.model;
    sample->parent = question.parents.empty() ? "" : question.parents.front();
  }

  void AddAnswersWithoutCode() {
    std::set<StepKey> asked_about;
    for (const auto& [key, step] : steps_)
      for (const std::string& parent : step.parents)
        if (step.kind == "propose") asked_about.insert({key.first, parent});
    for (const StepKey& key : order_) {
      const SearchStep& step = steps_.at(key);
      if (step.kind != "propose" || !step.answered || judged_.contains(key) ||
          !asked_about.contains(key))
        continue;
      Sample sample;
      sample.search = key.first;
      sample.key = key.second;
      sample.proposer = proposers_[key.first];
      Describe(step, &sample);
      samples_.push_back(std::move(sample));
    }
  }

  Store& store_;
  const std::function<void(const std::string&)>& notice_;
  std::vector<Sample> samples_;
  std::map<std::string, size_t> of_verdict_;      // verdict's id -> sample
  std::map<std::string, std::string> proposers_;  // of searches
  std::map<StepKey, SearchStep> steps_;
  std::vector<StepKey> order_;                                        // in which steps were begun
  std::map<std::pair<std::string, std::string>, Verdict> confirmed_;  // by search and source
  std::set<StepKey> judged_;  // questions whose answers were judged
};

}  // namespace

Result<std::vector<Sample>> ReadSamples(Store& store,
                                        const std::function<void(const std::string&)>& notice) {
  return Reader(store, notice).Read();
}

}  // namespace assay
