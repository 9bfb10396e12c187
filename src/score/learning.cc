#include "score/learning.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace assay {

std::vector<LearningPoint> LearningCurve(const std::vector<std::vector<Attempt>>& problems,
                                         int64_t asked) {
  ASSAY_CHECK(asked >= static_cast<int64_t>(problems.size()));
  size_t rounds = 0;
  for (const auto& attempts : problems) rounds = std::max(rounds, attempts.size());
  std::vector<LearningPoint> curve;
  for (size_t round = 1; round <= rounds; ++round) {
    LearningPoint point;
    point.round = static_cast<int64_t>(round);
    double log_speedup = 0;
    for (const auto& attempts : problems) {
      bool correct = false, certified = false;
      double best = 1;
      for (size_t i = 0; i < std::min(round, attempts.size()); ++i) {
        correct = correct || Qualifies(attempts[i], 0, false);
        certified = certified || Qualifies(attempts[i], 1, true);
        if (attempts[i].correct()) best = std::max(best, attempts[i].speedup);
      }
      point.correct += correct ? 1 : 0;
      point.certified += certified ? 1 : 0;
      log_speedup += std::log(best);
    }
    const auto count = static_cast<double>(asked);
    point.correct /= count;
    point.certified /= count;
    point.mean_speedup = std::exp(log_speedup / count);
    curve.push_back(point);
  }
  return curve;
}

}  // namespace assay
