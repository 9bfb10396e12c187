// The tuner: a strategy without a model. Its candidates are variants of one source, by its
// `//! tune` lines.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "search/points.h"
#include "search/step.h"

namespace assay {

class Tuner : public Strategy {
 public:
  // `strategy` as for MakeChooser; `width`: candidates in hand at a time. Errors (kUsage): the
  // source leaves nothing open, or a line of it is wrong.
  static Result<std::unique_ptr<Tuner>> Make(const std::string& strategy, const std::string& name,
                                             const std::string& source, const std::string& language,
                                             uint64_t seed, size_t width);

  std::vector<Step> Begin() override;
  std::vector<Step> Heard(const Step& step, const StepResult& result) override;

 private:
  Tuner(Chooser chooser, std::string name, std::string source, const TuneSpace& space,
        uint64_t seed, size_t width)
      : chooser_(std::move(chooser)),
        name_(std::move(name)),
        source_(std::move(source)),
        known_(space),
        seed_(seed),
        width_(width) {}
  std::vector<Step> Fill();
  Step StepFor(const std::string& key, const Choice& choice);

  const Chooser chooser_;
  const std::string name_, source_;
  TunerKnowledge known_;
  const uint64_t seed_;
  const size_t width_;
  size_t next_ = 0;                          // number of the next step
  std::map<std::string, TunePoint> points_;  // of steps in hand
  std::vector<std::string> keys_;            // of the trials
};

}  // namespace assay
