#include "search/tuner.h"

#include <fmt/format.h>

namespace assay {

Result<std::unique_ptr<Tuner>> Tuner::Make(const std::string& strategy, const std::string& name,
                                           const std::string& source, const std::string& language,
                                           uint64_t seed, size_t width) {
  ASSAY_ASSIGN_OR_RETURN(Chooser chooser, MakeChooser(strategy));
  const auto space = ParseTuneSpace(source, language);
  if (!space) return UsageError(fmt::format("{}: {}", name, space.error()));
  if (CountPoints(*space) < 2)
    return UsageError(fmt::format(
        "{} leaves nothing open: give it lines such as '//! tune BLOCK = 64 128 256'", name));
  return std::unique_ptr<Tuner>(new Tuner(std::move(chooser), name, source, *space, seed, width));
}

Step Tuner::StepFor(const std::string& key, const Choice& choice) {
  Step step;
  step.key = key;
  for (const size_t parent : choice.parents) step.lineage.parents.push_back(keys_[parent]);
  step.lineage.operation = std::string(choice.operation);
  step.lineage.note = DescribePoint(known_.space(), choice.point);
  step.name = name_;
  step.source = WriteVariant(source_, known_.space(), choice.point);
  known_.Ask(choice.point);
  points_[key] = choice.point;
  return step;
}

std::vector<Step> Tuner::Fill() {
  std::vector<Step> steps;
  while (points_.size() < width_) {
    const std::string key = fmt::format("judge/{}", next_);
    StepRandom random(seed_, key);
    const auto choice = chooser_(known_, random);
    if (!choice) break;
    ++next_;
    steps.push_back(StepFor(key, *choice));
  }
  return steps;
}

std::vector<Step> Tuner::Begin() {
  std::vector<Step> steps{StepFor(fmt::format("judge/{}", next_++),
                                  {TunePoint(known_.space().tunes.size(), 0), {}, "seed"})};
  for (Step& step : Fill()) steps.push_back(std::move(step));
  return steps;
}

std::vector<Step> Tuner::Heard(const Step& step, const StepResult& result) {
  const auto found = points_.find(step.key);
  if (found == points_.end()) return {};
  const TunePoint point = found->second;
  points_.erase(found);
  if (result.verdict) {
    known_.Tell(point, RatioOf(*result.verdict).value);
    keys_.push_back(step.key);
  } else {
    known_.Forget(point);  // the machine's trouble says nothing about it
  }
  return Fill();
}

}  // namespace assay
