#include "session/host_plan.h"

namespace assay {
namespace {

constexpr size_t kAheadMax = 4;

}  // namespace

std::vector<HostsToBegin> PlanHosts(const HostPlanFacts& facts, size_t index,
                                    std::span<const bool> built) {
  std::vector<HostsToBegin> begin{{index, HostUse::kCorrectness}};
  if (facts.alone) return begin;
  // CUDA starts in every host, on a core of its own where there are some.
  const bool other_size = facts.on_device && facts.has_other_size;
  if (other_size) begin.push_back({index, HostUse::kOtherSize});
  if (facts.on_device && facts.expects_speed && !facts.correctness_only)
    begin.push_back({index, HostUse::kPairs, 0, kPairsMin});
  const bool many = facts.on_device && facts.imports && facts.usable_cores >= kManyCores;
  for (size_t ahead = 1; ahead <= (many ? kAheadMax : 1); ++ahead) {
    const size_t next = index + ahead;
    if (next >= built.size() || !built[next]) continue;
    const int pair = static_cast<int>(ahead);  // on other cores
    begin.push_back({next, HostUse::kCorrectness, pair});
    if (other_size) begin.push_back({next, HostUse::kOtherSize, pair});
  }
  return begin;
}

}  // namespace assay
