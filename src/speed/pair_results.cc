// Where results of python hosts go, and what follows from their memory being used again.
#include <utility>

#include "correctness/gate1_run.h"
#include "speed/pair_runner.h"

namespace assay {

wire::Results PairRunner::ResultsOf(Side side) const {
  using wire::Results;
  // On a device no clock of the host's tells what its copying takes: it does without.
  if (!side.is_candidate && setup_.subtract_settle)
    return setup_.live.on_device() && !looks_at_opponent_ ? Results::kKept : Results::kIntoSlots;
  if (both_copy_ || (side.is_candidate && candidate_copies_)) return Results::kIntoSlots;
  const bool leaves = side.is_candidate ? setup_.candidate_leaves : setup_.opponent_leaves;
  return leaves ? Results::kLeft : Results::kIntoSlots;
}

void PairRunner::CopyFromNowOn(Side side) {
  (side.is_candidate ? candidate_copies_ : both_copy_) = true;
}

bool PairRunner::UsesResultsAgain(Side side, std::span<const uint32_t> order,
                                  const FilledSlots& filled) {
  if (order.size() < 2 || ResultsOf(side) != wire::Results::kLeft) return false;
  if (FindStrayWrites(setup_.live, *side.host, order)) return false;
  const uint32_t last = order.back();
  const bool is_probe = filled.probe != nullptr && filled.probe_slot == last;
  auto wrong = std::exchange(result_->wrong, std::nullopt);
  const double worst = std::exchange(result_->error_ratio, error_ratio_before_);
  if (CheckOne(side, last, filled.masters[last], is_probe ? filled.probe : nullptr)) {
    CopyFromNowOn(side);
    return true;
  }
  result_->wrong = std::move(wrong);
  result_->error_ratio = worst;
  return false;
}

HostResult<bool> PairRunner::IsRightInSlots(Side side, std::span<const uint32_t> order,
                                            const FilledSlots& filled) {
  Host& host = side.host->host;
  host.SetResults(ResultsOf(side));
  auto ran = setup_.live.RunUncounted(host, side.host->outputs, order,
                                      setup_.call_timeout_s + kBlockGraceS);
  if (ran) return Check(side, order, filled);
  return TroubleOf(side, ran.error());
}

}  // namespace assay
