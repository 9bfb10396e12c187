#include "cli/exit_code.h"

#include <algorithm>
#include <array>

namespace assay {
namespace {

constexpr std::array<int, 12> kGravestFirst{
    kExitBug,  kExitInterrupted, kExitEnvironment, kExitUsage,     kExitBudget,    kExitFoul,
    kExitDied, kExitBuildFailed, kExitWrong,       kExitUnsettled, kExitNotFaster, kExitGood,
};

}  // namespace

int ExitCodeOf(Outcome outcome) { return FactsOf(outcome).exit_code; }

int ExitCodeOf(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return kExitUsage;
    case ErrorKind::kEnvironment:
    case ErrorKind::kUnjudged:
      return kExitEnvironment;
    case ErrorKind::kInterrupted:
      return kExitInterrupted;
  }
  return kExitBug;
}

int CombineExitCodes(std::span<const int> codes) {
  for (const int code : codes)
    if (std::find(kGravestFirst.begin(), kGravestFirst.end(), code) == kGravestFirst.end())
      return kExitBug;
  for (const int grave : kGravestFirst)
    if (std::find(codes.begin(), codes.end(), grave) != codes.end()) return grave;
  return kExitGood;
}

}  // namespace assay
