#include "search/chains.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "model/outcome.h"
#include "search/random.h"

namespace assay {
namespace {

// "judge/3/1" or "propose/3/1": chain 3, turn 1.
struct Place {
  int64_t chain = -1;
  size_t turn = 0;
};

Place PlaceOf(std::string_view key) {
  const size_t first = key.find('/'), second = key.find('/', first + 1);
  Place place;
  if (second == std::string_view::npos) return place;
  std::from_chars(key.data() + first + 1, key.data() + second, place.chain);
  std::from_chars(key.data() + second + 1, key.data() + key.size(), place.turn);
  return place;
}

// A question without an answer teaches nothing: it is asked again in the next turn.
bool HasAnswer(const Tried& attempt) { return !attempt.source.empty() || !attempt.trouble.empty(); }

// A candidate that ran and was right is refined; any other is repaired.
const char* OperationAfter(const Tried& attempt) {
  return attempt.verdict && IsCorrect(attempt.verdict->outcome) ? "refine" : "repair";
}

}  // namespace

std::vector<Step> Chains::Begin() { return StartChains(); }

std::vector<Step> Chains::StartChains() {
  std::vector<Step> steps;
  while (open_ < terms_.width && std::ssize(chains_) < terms_.chains) {
    const int64_t number = std::ssize(chains_);
    chains_[number];
    ++open_;
    steps.push_back(Turn(number));
  }
  return steps;
}

Step Chains::Turn(int64_t number) {
  Chain& chain = chains_[number];
  Question question{"draft", {}, {}, ""};
  for (const Tried& turn : chain.turns)
    if (HasAnswer(turn)) question.tried.push_back(&turn);
  if (!question.tried.empty()) {
    question.parents = {question.tried.back()};
    question.operation = OperationAfter(*question.tried.back());
    question.tried.pop_back();
  } else if (!chain.turns.empty() && !chain.turns.front().idea.empty()) {
    question.operation = "realise";
    question.idea = chain.turns.front().idea;
  } else if (!ideas_.empty()) {
    question.operation = "realise";
    question.idea = ideas_.front();
    ideas_.erase(ideas_.begin());
  } else if (const Tried* pinned = FindAttempt(pinned_)) {
    question.operation = OperationAfter(*pinned);
    question.parents = {pinned};
  }
  Step step;
  step.kind = StepKind::kPropose;
  step.key = fmt::format("propose/{}/{}", number, chain.turns.size());
  step.lineage.operation = question.operation;
  step.lineage.note = question.idea;
  for (const Tried* parent : question.parents) step.lineage.parents.push_back(parent->key);
  step.prompt = writer_.Ask(question);
  step.prompt.key = step.key;
  step.prompt.seed = StepRandom(terms_.seed, step.key).Next() >> 1;
  return step;
}

const Tried* Chains::FindAttempt(const std::string& key) const {
  const Place place = PlaceOf(key);
  const auto chain = chains_.find(place.chain);
  if (chain == chains_.end() || place.turn >= chain->second.turns.size()) return nullptr;
  return &chain->second.turns[place.turn];
}

std::vector<Step> Chains::After(int64_t number) {
  Chain& chain = chains_[number];
  if (!chain.pruned && std::ssize(chain.turns) < terms_.turns) return {Turn(number)};
  --open_;
  return StartChains();
}

std::vector<Step> Chains::Heard(const Step& step, const StepResult& result) {
  const Place place = PlaceOf(step.key);
  Chain& chain = chains_[place.chain];
  if (step.kind == StepKind::kJudge) {
    Tried& attempt = chain.turns.back();
    attempt.verdict = result.verdict;
    if (result.error) attempt.trouble = result.error->message;
    return After(place.chain);
  }
  Tried attempt;
  attempt.key = step.key;
  attempt.idea = step.lineage.note;
  if (result.answer) {
    const auto& parents = step.lineage.parents;
    const Tried* parent = parents.empty() ? nullptr : FindAttempt(parents.front());
    auto source = writer_.ReadCode(*result.answer, parent == nullptr ? "" : parent->source);
    if (source)
      attempt.source = *std::move(source);
    else
      attempt.trouble = source.error();
  }
  Step judged;
  judged.key = fmt::format("judge/{}/{}", place.chain, place.turn);
  judged.lineage = {{step.key}, step.lineage.operation, step.lineage.note};
  judged.name = writer_.CandidateName();
  judged.source = attempt.source;
  if (!attempt.source.empty()) attempt.key = judged.key;
  chain.turns.push_back(std::move(attempt));
  if (judged.source.empty()) return After(place.chain);
  return {std::move(judged)};
}

std::vector<Step> Chains::Steered(const std::string& action, const std::string& text) {
  if (action == "inject") ideas_.push_back(text);
  if (action == "pin") pinned_ = text;
  if (action == "prune") {
    Place place = PlaceOf(text);
    if (place.chain < 0) std::from_chars(text.data(), text.data() + text.size(), place.chain);
    if (const auto found = chains_.find(place.chain); found != chains_.end())
      found->second.pruned = true;
  }
  return {};
}

}  // namespace assay
