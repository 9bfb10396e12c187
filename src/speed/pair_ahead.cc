// What a candidate may have done before the clock of its blocks starts, or left for after its end.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "rules/head_start.h"
#include "speed/pair_runner.h"

namespace assay {

void PairRunner::ChargeHeadStart(PairSamples* samples, std::vector<RoundTimes>* rounds) {
  // Each by itself: who does not wait for a device is ready sooner, and looked at for longer.
  std::vector<int64_t> charges_ns = LookChargesNs(samples->order, look_ns_);
  if (setup_.foreign_code) {
    const std::vector<int64_t> wakes_ns = WakeChargesNs(samples->order, uncharged_ns_);
    for (size_t i = 0; i < charges_ns.size(); ++i) charges_ns[i] += wakes_ns[i];
  }
  opponents_look_ns_ = std::llround(MedianOfSide('r', samples->order, look_ns_));
  ASSAY_CHECK(charges_ns.size() == 2 * rounds->size());
  const size_t first = candidate_ns_.size() - charges_ns.size();
  const bool any =
      std::any_of(charges_ns.begin(), charges_ns.end(), [](int64_t ns) { return ns != 0; });
  if (any) samples->charged_ns.assign(samples->block_ns.size(), 0);
  for (size_t i = 0, block = 0; any && i < charges_ns.size(); ++i, ++block) {
    while (samples->order[block] != 'c') ++block;
    samples->block_ns[block] += charges_ns[i];
    samples->charged_ns[block] = charges_ns[i];
    const double of_a_call_ns = static_cast<double>(charges_ns[i]) / calls_;
    (*rounds)[i / 2].candidate_ns[i % 2] += of_a_call_ns;
    candidate_ns_[first + i] += of_a_call_ns;
  }
}

}  // namespace assay
