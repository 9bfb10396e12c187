#include "search/evolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/outcome.h"
#include "toolchain/build.h"

namespace assay {
namespace {

constexpr double kExploration = 0.3;
constexpr double kGainOfCorrect = 0.02;  // of a candidate that is right, and no faster
// Of a variant: it takes a judgement, and no answer. A question with its judgement costs 1.
constexpr double kCostOfTuning = 0.5;
constexpr int64_t kPortsOfOne = 2;  // questions on a candidate of elsewhere

// The operation whose worth the line tells. A candidate of elsewhere, as it stands, was no choice.
std::string ArmOf(const std::string& operation, bool from_nothing) {
  if (operation == "port" && from_nothing) return "as it stands";
  return operation == "realise" ? "idea" : operation;
}

std::string CellOf(const Verdict& verdict) {
  const bool staged =
      std::any_of(verdict.kernels.begin(), verdict.kernels.end(),
                  [](const KernelRecord& kernel) { return kernel.shared_bytes > 0; });
  return fmt::format("{}/{}/{}", verdict.roofline ? verdict.roofline->regime : "",
                     verdict.kernels.size(), staged ? "staged" : "direct");
}

}  // namespace

Evolution::Evolution(const Writer& writer, EvolutionTerms terms)
    : writer_(writer), terms_(std::move(terms)), islands_(static_cast<size_t>(terms_.islands)) {
  for (size_t i = 0; i < terms_.ports.size(); ++i) {
    Line line{"port", i % islands_.size(), {}, "", 1, std::nullopt};
    line.origin = i;
    queued_.push_back(std::move(line));
  }
}

std::vector<Step> Evolution::Fill() {
  std::vector<Step> steps;
  while (in_hand_ < terms_.width && asked_ < terms_.lines_max) {
    Line line = NextLine();
    if (line.operation == "tune")
      steps.push_back(Tune(std::move(line)));
    else if (line.operation == "port" && line.parents.empty())
      steps.push_back(Port(std::move(line)));
    else
      steps.push_back(Ask(std::move(line)));
  }
  return steps;
}

Step Evolution::Ask(Line line) {
  Question question{line.operation, {}, {}, line.idea};
  if (line.operation == "port") question.origin = &terms_.ports[line.origin];
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

Step Evolution::Tune(Line line) {
  const size_t parent = line.parents.front();
  const size_t number = variants_.at(parent).tuning;
  Tuning& tuning = tunings_[number];
  const Tried& root = attempts_[tuning.root];
  Step step;
  step.key = fmt::format("judge/{}", asked_++);
  step.lineage = {{attempts_[parent].key}, "tune", DescribePoint(tuning.known.space(), line.point)};
  step.name = writer_.CandidateName();
  step.source = WriteVariant(root.source, tuning.known.space(), line.point);
  tuning.known.Ask(line.point);
  ++in_hand_;
  ++arms_["tune"].pulls;
  arms_["tune"].cost += kCostOfTuning;
  Tried attempt;
  attempt.key = step.key;
  attempt.source = step.source;
  attempt.idea = root.idea;
  line.attempt = attempts_.size();
  variants_[attempts_.size()] = {number, line.point};
  attempts_.push_back(std::move(attempt));
  ratios_.push_back(0);
  lines_[step.key] = std::move(line);
  return step;
}

Step Evolution::Port(Line line) {
  const Tried& there = terms_.ports[line.origin];
  Step step;
  step.key = fmt::format("judge/{}", asked_++);
  step.lineage = {{}, "port", there.idea};
  step.name = writer_.CandidateName();
  step.source = there.source;
  ++in_hand_;
  Tried attempt;
  attempt.key = step.key;
  attempt.source = step.source;
  attempt.idea = there.idea;
  line.attempt = attempts_.size();
  ported_.push_back({line.origin, line.island, attempts_.size()});
  attempts_.push_back(std::move(attempt));
  ratios_.push_back(0);
  OpenTuning(attempts_.size() - 1);
  lines_[step.key] = std::move(line);
  return step;
}

Evolution::Ported* Evolution::OpenPort(size_t island) {
  for (Ported& ported : ported_)
    if (ported.island == island && ported.judged && ported.asked < kPortsOfOne) return &ported;
  return nullptr;
}

std::optional<size_t> Evolution::OpenAblation(const Island& island) const {
  std::optional<size_t> chosen;
  for (const auto& [cell, elite] : island.elites)
    if (!ablated_.contains(elite) && (!chosen || ratios_[elite] > ratios_[*chosen])) chosen = elite;
  return chosen;
}

void Evolution::OpenTuning(size_t attempt) {
  const std::string& text = attempts_[attempt].source;
  const auto source = CandidateFromText(writer_.CandidateName(), text);
  const auto space = source ? ParseTuneSpace(text, source->language)
                            : std::expected<TuneSpace, std::string>(std::unexpect);
  if (!space || CountPoints(*space) < 2) return;
  variants_[attempt] = {tunings_.size(), TunePoint(space->tunes.size(), 0)};
  tunings_.push_back({attempt, TunerKnowledge(*space)});
  tunings_.back().known.Ask(variants_[attempt].point);
}

std::optional<std::pair<size_t, TunePoint>> Evolution::ChooseVariant(const Island& island,
                                                                     StepRandom& random) const {
  std::optional<std::pair<size_t, TunePoint>> chosen;
  for (const auto& [cell, elite] : island.elites) {
    const auto variant = variants_.find(elite);
    if (variant == variants_.end() || (chosen && ratios_[chosen->first] >= ratios_[elite]))
      continue;
    auto point =
        MutatedPoint(tunings_[variant->second.tuning].known, variant->second.point, random);
    if (point) chosen.emplace(elite, *std::move(point));
  }
  return chosen;
}

Evolution::Line Evolution::NextLine() {
  if (!queued_.empty()) {
    Line line = std::move(queued_.front());
    queued_.pop_front();
    return line;
  }
  StepRandom random(terms_.seed, fmt::format("operation/{}", asked_));
  Line line;
  // Each has its turn, however many questions an idea leads to.
  line.island = static_cast<size_t>(turn_++) % islands_.size();
  Island& island = islands_[line.island];
  auto variant = ChooseVariant(island, random);
  line.operation = ChooseOperation(OpenOperations(island, variant.has_value()), random);
  if (line.operation == "tune") {
    line.parents = {variant->first};
    line.point = std::move(variant->second);
  }
  if (line.operation == "port") {
    Ported& ported = *OpenPort(line.island);
    ++ported.asked;
    line.origin = ported.origin;
    line.parents = {ported.attempt};
  }
  if (line.operation == "ablate") {
    line.parents = {*OpenAblation(island)};
    ablated_.insert(line.parents.front());
  }
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

std::vector<std::string> Evolution::OpenOperations(const Island& island, bool tunable) {
  if (terms_.greedy && !island.elites.empty()) return {"refine"};
  std::vector<std::string> open{"idea"};
  if (tunable) open.emplace_back("tune");
  if (island.failed) open.emplace_back("repair");
  if (!island.elites.empty()) {
    open.emplace_back("refine");
    if (std::any_of(islands_.begin(), islands_.end(), [&](const Island& other) {
          return &other != &island && !other.elites.empty();
        }))
      open.emplace_back("cross");
  }
  if (terms_.ablates && OpenAblation(island)) open.emplace_back("ablate");
  if (OpenPort(static_cast<size_t>(&island - islands_.data())) != nullptr)
    open.emplace_back("port");
  return open;
}

std::string Evolution::ChooseOperation(const std::vector<std::string>& open,
                                       StepRandom& random) const {
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
    HeardVerdict(lines_.at(step.key), result);
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
  Arm& arm = arms_[ArmOf(line.operation, line.parents.empty())];
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
  if (line.operation == "ablate") {
    const std::string trick = writer_.ReadIdea(*result.answer);
    line.idea =
        fmt::format("{} without a trick, {:.2f}x before: {}", attempts_[line.parents.front()].key,
                    ratios_[line.parents.front()], trick.empty() ? "it was not named" : trick);
  }
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
  OpenTuning(attempts_.size() - 1);
  lines_[judged.key] = line;
  return {std::move(judged)};
}

void Evolution::HeardVerdict(const Line& line, const StepResult& result) {
  const size_t place = *line.attempt;
  Tried& attempt = attempts_[place];
  Island& island = islands_[line.island];
  attempt.verdict = result.verdict;
  if (result.error) attempt.trouble = result.error->message;
  for (Ported& ported : ported_) ported.judged |= ported.attempt == place;
  if (!result.verdict) return;  // the machine's trouble says nothing about it
  const Ratio ratio = RatioOf(*result.verdict);
  ratios_[place] = ratio.value;
  if (const auto variant = variants_.find(place); variant != variants_.end())
    tunings_[variant->second.tuning].known.Tell(variant->second.point, ratio.value);
  Arm& arm = arms_[ArmOf(line.operation, line.parents.empty())];
  if (!IsCorrect(result.verdict->outcome)) {
    // A candidate that was repaired in vain is left alone.
    if (line.operation != "repair" && line.operation != "tune" && result.duplicate_of.empty())
      island.failed = place;
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
