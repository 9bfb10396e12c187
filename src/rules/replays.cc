#include "rules/replays.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay {
namespace {
constexpr double kBoundNs = 150e3;
// Blocks last about so long (speed/block_length.cc): longer calls are alone in theirs.
constexpr double kReplayedNs = 1e6;
// A thousand launches of PyTorch's at 10 us and more.
constexpr double kTriedNs = 20e6;
constexpr double kShownRatio = 0.9;
}  // namespace

bool MayBeBoundByLaunches(const LaunchedTimes& launched) {
  return std::min(launched.reference_ns, launched.candidate_ns) < kBoundNs;
}

bool LaunchingCounts(const LaunchedTimes& launched) {
  return std::min(launched.reference_ns, launched.candidate_ns) < kReplayedNs;
}

bool LaunchesMayShow(const LaunchedTimes& launched) {
  return std::min(launched.reference_ns, launched.candidate_ns) < kTriedNs;
}

bool LaunchesShow(const LaunchedTimes& launched, const LaunchedTimes& replayed) {
  return replayed.reference_ns < kShownRatio * launched.reference_ns ||
         replayed.candidate_ns < kShownRatio * launched.candidate_ns;
}

std::string NoteOfLaunches(const std::string& opponent) {
  return fmt::format(
      "launching is timed with the calls: those of the {} or of the candidate could not be "
      "replayed as a CUDA graph",
      opponent);
}

std::string NoteOfReplays(const LaunchedTimes& launched, const std::string& opponent) {
  return fmt::format(
      "calls of both sides are replayed as CUDA graphs, or launching would be timed with them; "
      "launched one by one they take {:.3g} us, the {}'s {:.3g} us ({:.3g}x)",
      launched.candidate_ns / 1e3, opponent, launched.reference_ns / 1e3,
      launched.reference_ns / launched.candidate_ns);
}

}  // namespace assay
