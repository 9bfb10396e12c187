// Choosers of the tuner: which point of a space to measure next, after what was measured. Pure.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "search/random.h"
#include "toolchain/tune_space.h"

namespace assay {

struct TunerTrial {
  TunePoint point;
  double ratio = 0;  // 0: wrong, or it did not build
};

// A point's coordinates are the ranks of its values, so that neighbours are alike.
class TunerKnowledge {
 public:
  explicit TunerKnowledge(const TuneSpace& space);

  const TuneSpace& space() const { return space_; }
  const std::vector<TunerTrial>& trials() const { return trials_; }
  // Asked for, and not told yet.
  const std::set<TunePoint>& pending() const { return pending_; }
  bool IsNew(const TunePoint& point) const;  // allowed, and never asked for
  void Ask(const TunePoint& point);
  // Returns the trial's place.
  size_t Tell(const TunePoint& point, double ratio);
  // What was asked for has no result: nobody learns from it.
  void Forget(const TunePoint& point) { pending_.erase(point); }

  size_t RankOf(size_t line, size_t place) const { return rank_[line][place]; }
  size_t PlaceOf(size_t line, size_t rank) const { return place_[line][rank]; }
  // 0 to 1; by the logarithm where all values of the line are above 0.
  double Scaled(size_t line, size_t place) const { return scaled_[line][place]; }
  // A new point, each as likely; nullopt: none is left, or none was found.
  std::optional<TunePoint> RandomPoint(StepRandom& random) const;
  // All new points in order, at most this many.
  std::vector<TunePoint> NewPoints(size_t count_max) const;

 private:
  const TuneSpace space_;
  std::vector<std::vector<size_t>> rank_, place_;
  std::vector<std::vector<double>> scaled_;
  std::vector<TunerTrial> trials_;
  std::set<TunePoint> asked_, pending_;
};

struct Choice {
  TunePoint point;
  std::vector<size_t> parents;  // trials
  std::string_view operation;
};

using Chooser = std::function<std::optional<Choice>(const TunerKnowledge&, StepRandom&)>;

// "sample" (random), "refine" (neighbours of the best), "evolve", "surrogate", "exhaustive"; for
// ablations "greedy" (children of the best alone) and "no-archive" (of the newest). Errors (kUsage)
// name those that there are. nullopt from a chooser: nothing new is left.
Result<Chooser> MakeChooser(const std::string& strategy);

// The surrogate: a Gaussian process over the logarithm of the ratio; the point with the greatest
// expected improvement.
std::optional<Choice> ChooseBySurrogate(const TunerKnowledge& known, StepRandom& random);
// `point` with one or two coordinates changed; nullopt: no new one was found.
std::optional<TunePoint> MutatedPoint(const TunerKnowledge& known, const TunePoint& point,
                                      StepRandom& random);

}  // namespace assay
