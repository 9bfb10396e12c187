#include "search/evolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/outcome.h"

namespace assay {
namespace {

constexpr double kExploration = 0.3;
constexpr double kGainOfCorrect = 0.02;  // of a candidate that is right, and no faster

std::string CellOf(const Verdict& verdict) {
  const bool staged =
      std::any_of(verdict.kernels.begin(), verdict.kernels.end(),
                  [](const KernelRecord& kernel) { return kernel.shared_bytes > 0; });
  return fmt::format("{}/{}/{}", verdict.roofline ? verdict.roofline->regime : "",
                     verdict.kernels.size(), staged ? "staged" : "direct");
}

}  // namespace

Evolution::Evolution(const Writer& writer, EvolutionTerms terms)
    : writer_(writer), terms_(terms), islands_(static_cast<size_t>(terms.islands)) {}

std::vector<Step> Evolution::Fill() {
  std::vector<Step> steps;
  while (in_hand_ < terms_.width && asked_ < terms_.lines_max) steps.push_back(Ask(NextLine()));
  return steps;
}

Step Evolution::Ask(Line line) {
  Question question{line.operation, {}, {}, line.idea};
  Step step;
  step.kind = StepKind::kPropose;
  step.key = fmt::format("propose/{}", asked_);
  step.lineage.operation = line.operation;
  step.lineage.note = line.idea;
  for (const size_t parent : line.parents) {
    question.parents.push_back(&attempts_[parent]);
    step.lineage.parents.push_back(attempts_[parent].key);
  }
  for (const Tried& attempt : attempts_)
    if (!attempt.idea.empty()) question.tried.push_back(&attempt);
  step.prompt = writer_.Ask(question);
  step.prompt.key = step.key;
  step.prompt.seed = StepRandom(terms_.seed, step.key).Next() >> 1;
  ++asked_;
  ++in_hand_;
  lines_[step.key] = std::move(line);
  return step;
}

Evolution::Line Evolution::NextLine() {
  if (!queued_.empty()) {
    Line line = std::move(queued_.front());
    queued_.pop_front();
    return line;
  }
  StepRandom random(terms_.seed, fmt::format("operation/{}", asked_));
  Line line;
  line.island = static_cast<size_t>(asked_) % islands_.size();
  Island& island = islands_[line.island];
  line.operation = ChooseOperation(island, random);
  if (line.operation == "repair") line.parents = {*std::exchange(island.failed, std::nullopt)};
  if (line.operation == "refine" || line.operation == "cross")
    line.parents = {RandomElite(island, random)};
  if (line.operation == "cross") {
    std::vector<const Island*> others;
    for (const Island& other : islands_)
      if (&other != &island && !other.elites.empty()) others.push_back(&other);
    line.parents.push_back(RandomElite(*others[random.Below(others.size())], random));
  }
  return line;
}

// The best of two, drawn from the cells.
size_t Evolution::RandomElite(const Island& island, StepRandom& random) const {
  const auto draw = [&] {
    return std::next(island.elites.begin(),
                     static_cast<std::ptrdiff_t>(random.Below(island.elites.size())))
        ->second;
  };
  const size_t one = draw(), other = draw();
  return ratios_[one] >= ratios_[other] ? one : other;
}

std::string Evolution::ChooseOperation(const Island& island, StepRandom& random) const {
  std::vector<std::string> open{"idea"};
  if (island.failed) open.emplace_back("repair");
  if (!island.elites.empty()) {
    open.emplace_back("refine");
    if (std::any_of(islands_.begin(), islands_.end(), [&](const Island& other) {
          return &other != &island && !other.elites.empty();
        }))
      open.emplace_back("cross");
  }
  double pulls = 1;
  for (const auto& [name, arm] : arms_) pulls += static_cast<double>(arm.pulls);
  std::string chosen;
  double most = -1;
  for (const std::string& name : open) {
    const auto found = arms_.find(name);
    // One that was never tried comes first; among several of these chance decides.
    double value = 1e9 + random.Unit();
    if (found != arms_.end() && found->second.pulls > 0)
      value = found->second.gain / found->second.cost +
              kExploration * std::sqrt(std::log(pulls) / static_cast<double>(found->second.pulls));
    if (value > most) most = value, chosen = name;
  }
  return chosen;
}

std::vector<Step> Evolution::Heard(const Step& step, const StepResult& result) {
  std::vector<Step> steps;
  if (step.kind == StepKind::kPropose) {
    steps = HeardAnswer(lines_.at(step.key), step, result);
    if (steps.empty()) --in_hand_;
  } else {
    HeardVerdict(lines_.at(step.lineage.parents.front()), result);
    --in_hand_;
  }
  for (Step& more : Fill()) steps.push_back(std::move(more));
  return steps;
}

std::vector<Step> Evolution::HeardAnswer(Line& line, const Step& step, const StepResult& result) {
  if (result.answer && result.answer->usage.usd > 0) {
    usd_ += result.answer->usage.usd;
    line.cost = result.answer->usage.usd * static_cast<double>(asked_) / usd_;
  }
  Arm& arm = arms_[line.operation == "realise" ? "idea" : line.operation];
  arm.cost += line.cost;
  ++arm.pulls;
  if (!result.answer) return {};
  if (line.operation == "idea") {
    const std::string idea = writer_.ReadIdea(*result.answer);
    for (int64_t i = 0; i < terms_.realisations && !idea.empty(); ++i)
      queued_.push_back({"realise", line.island, {}, idea, 1, std::nullopt});
    return {};
  }
  const std::string parent = line.parents.empty() ? "" : attempts_[line.parents.front()].source;
  auto source = writer_.ReadCode(*result.answer, parent);
  Tried attempt;
  attempt.idea = line.idea;
  line.attempt = attempts_.size();
  ratios_.push_back(0);
  if (!source) {
    attempt.key = step.key;
    attempt.trouble = source.error();
    attempts_.push_back(std::move(attempt));
    return {};
  }
  Step judged;
  judged.key = "judge" + step.key.substr(step.key.find('/'));
  judged.lineage = {{step.key}, line.operation, line.idea};
  judged.name = writer_.CandidateName();
  judged.source = *source;
  attempt.key = judged.key;
  attempt.source = *std::move(source);
  attempts_.push_back(std::move(attempt));
  return {std::move(judged)};
}

void Evolution::HeardVerdict(const Line& line, const StepResult& result) {
  const size_t place = *line.attempt;
  Tried& attempt = attempts_[place];
  Island& island = islands_[line.island];
  attempt.verdict = result.verdict;
  if (result.error) attempt.trouble = result.error->message;
  if (!result.verdict) return;  // the machine's trouble says nothing about it
  const Ratio ratio = RatioOf(*result.verdict);
  ratios_[place] = ratio.value;
  Arm& arm = arms_[line.operation == "realise" ? "idea" : line.operation];
  if (!IsCorrect(result.verdict->outcome)) {
    // A candidate that was repaired in vain is left alone.
    if (line.operation != "repair" && result.duplicate_of.empty()) island.failed = place;
  } else if (ratio.value > 0 && result.duplicate_of.empty()) {
    arm.gain += kGainOfCorrect;
    if (island.best > 0) arm.gain += std::max(0.0, std::log(ratio.value / island.best));
    const std::string cell = terms_.cells ? CellOf(*result.verdict) : "";
    const auto found = island.elites.find(cell);
    const bool displaces =
        found == island.elites.end() || ratio.low > RatioOf(*attempts_[found->second].verdict).high;
    if (displaces) island.elites[cell] = place;
  }
  if (ratio.value > island.best) {
    island.best = ratio.value;
    island.without_gain = 0;
  } else if (++island.without_gain >= terms_.stagnation) {
    BeginAgain(line.island);
  }
}

void Evolution::BeginAgain(size_t number) {
  Island fresh;
  const auto best =
      std::max_element(islands_.begin(), islands_.end(), [&](const Island& a, const Island& b) {
        return (&a == &islands_[number] ? -1 : a.best) < (&b == &islands_[number] ? -1 : b.best);
      });
  std::optional<std::pair<std::string, size_t>> chosen;
  for (const auto& elite : best->elites)
    if (!chosen || ratios_[elite.second] > ratios_[chosen->second]) chosen = elite;
  if (chosen) {
    fresh.elites.insert(*chosen);
    fresh.best = ratios_[chosen->second];
  }
  islands_[number] = std::move(fresh);
}

std::vector<Step> Evolution::Steered(const std::string& action, const std::string& text) {
  if (action == "inject") queued_.push_front({"realise", 0, {}, text, 1, std::nullopt});
  for (size_t place = 0; place < attempts_.size(); ++place) {
    if (attempts_[place].key != text) continue;
    if (action == "pin") queued_.push_front({"refine", 0, {place}, "", 1, std::nullopt});
    if (action == "prune")
      for (Island& island : islands_) {
        std::erase_if(island.elites, [&](const auto& elite) { return elite.second == place; });
        if (island.failed == place) island.failed.reset();
      }
  }
  return {};
}

}  // namespace assay
