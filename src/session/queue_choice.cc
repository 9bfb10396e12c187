#include "session/queue_choice.h"

#include <algorithm>

#include "rules/stream_use.h"

namespace assay {
namespace {

// torch.compile's other modes replay CUDA graphs.
bool MayReplay(const std::string& baseline) {
  return baseline != "eager" && baseline != "compiled";
}

}  // namespace

DeviceQueues QueuesOf(const SessionTerms& terms, std::string_view candidate) {
  const OpponentChoice& opponent = terms.opponent;
  const bool uses_streams =
      !StreamWord(candidate).empty() ||
      (opponent.against
           ? !StreamWord(opponent.against->content).empty()
           : !StreamWord(terms.problem.source).empty() ||
                 std::any_of(opponent.baselines.begin(), opponent.baselines.end(), MayReplay));
  return uses_streams ? DeviceQueues::kByDefault : DeviceQueues::kOne;
}

}  // namespace assay
