#include "speed/charges.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/check.h"
#include "base/median.h"
#include "rules/head_start.h"

namespace assay {

double WakeExcessNs(const PairBlocks& blocks, std::vector<double> earlier_ns) {
  earlier_ns.push_back(MedianExcessNs(blocks.samples.order, blocks.uncharged_ns));
  return Median(std::move(earlier_ns));
}

std::vector<int64_t> ChargesNs(const PairBlocks& blocks, std::optional<double> wake_excess_ns) {
  const std::string& order = blocks.samples.order;
  // Each by itself: who does not wait for a device is ready sooner, and looked at for longer.
  std::vector<int64_t> charges_ns = LookChargesNs(order, blocks.look_ns);
  if (wake_excess_ns) {
    const std::vector<int64_t> wakes_ns =
        WakeChargesNs(order, blocks.uncharged_ns, *wake_excess_ns);
    for (size_t i = 0; i < charges_ns.size(); ++i) charges_ns[i] += wakes_ns[i];
  }
  return charges_ns;
}

void Charge(const std::vector<int64_t>& charges_ns, uint32_t calls, PairSamples* samples,
            std::vector<RoundTimes>* rounds) {
  ASSAY_CHECK(charges_ns.size() == 2 * rounds->size());
  const bool any =
      std::any_of(charges_ns.begin(), charges_ns.end(), [](int64_t ns) { return ns != 0; });
  if (!any) return;
  samples->charged_ns.assign(samples->block_ns.size(), 0);
  for (size_t i = 0, block = 0; i < charges_ns.size(); ++i, ++block) {
    while (samples->order[block] != 'c') ++block;
    samples->block_ns[block] += charges_ns[i];
    samples->charged_ns[block] = charges_ns[i];
    (*rounds)[i / 2].candidate_ns[i % 2] += static_cast<double>(charges_ns[i]) / calls;
  }
}

}  // namespace assay
