#include "judge/replays.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay {
namespace {
constexpr double kShortNs = 150e3;
constexpr double kBoundShare = 0.9;
}  // namespace

bool MayBeBoundByLaunches(const LaunchedTimes& launched) {
  return std::min(launched.reference_ns, launched.candidate_ns) < kShortNs;
}

bool LaunchesBind(const LaunchedTimes& launched, const LaunchedTimes& replayed) {
  return replayed.reference_ns < kBoundShare * launched.reference_ns ||
         replayed.candidate_ns < kBoundShare * launched.candidate_ns;
}

std::string NoteOfReplays(const LaunchedTimes& launched, const std::string& opponent) {
  return fmt::format(
      "calls of both sides are replayed as CUDA graphs, or launching would be timed with them; "
      "launched one by one they take {:.3g} us, the {}'s {:.3g} us ({:.3g}x)",
      launched.candidate_ns / 1e3, opponent, launched.reference_ns / 1e3,
      launched.reference_ns / launched.candidate_ns);
}

}  // namespace assay
