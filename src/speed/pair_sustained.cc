// Both sides in blocks that follow on one another: what calls take once clocks have come down.
#include <poll.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/clock.h"
#include "base/median.h"
#include "base/trace.h"
#include "machine/machine.h"
#include "machine/meter.h"
#include "rules/sustained.h"
#include "speed/pair_runner.h"

namespace assay {
namespace {

// Between blocks the machine rests: they are long enough for that to be a small part.
constexpr double kSustainedBlockNs = 20e6;
// Before each side, so that the second begins with clocks as high as the first did.
constexpr int kRestMs = 1000;
// The pair whose hosts these are: one that starts none beyond its own.
constexpr int kSustainedPair = kPairsMin - 1;

}  // namespace

HostResult<bool> PairRunner::Sustain(double seconds) {
  const Span span("sustain");
  std::optional<HostResult<LiveHost>> candidate;
  auto right = SustainPair(seconds, &candidate);
  EndPair(right.has_value(), &candidate);
  return right;
}

HostResult<bool> PairRunner::SustainPair(double seconds,
                                         std::optional<HostResult<LiveHost>>* host) {
  replaying_ = false;
  setup_.live.Clear();
  auto opponent = StartHosts(kSustainedPair, host);
  if (!opponent) return std::unexpected(opponent.error());
  const BoundThread bound_judge(PlanCores(UsableCpus(), setup_.threads, kSustainedPair).judge);
  setup_.pool.BeginProcess();
  const Side reference{opponent->host(), false}, tried{&***host, true};
  const bool candidate_first = random_() % 2 == 0;
  SustainedRecord record;
  record.seconds = seconds;
  for (const bool is_candidate : {candidate_first, !candidate_first}) {
    auto filled = FillSlots(slots_);
    if (!filled) return OpponentsTrouble(filled.error());
    auto right = SustainSide(is_candidate ? tried : reference, seconds, *filled,
                             is_candidate ? &record.candidate : &record.reference);
    if (!right || !*right) return right;
  }
  result_->sustained = std::move(record);
  return true;
}

HostResult<bool> PairRunner::SustainSide(Side side, double seconds, const FilledSlots& filled,
                                         SustainedSide* sustained) {
  const double call_ns = std::max(1.0, Median(side.is_candidate ? candidate_ns_ : reference_ns_));
  const double wanted = std::ceil(kSustainedBlockNs / call_ns);
  const auto calls = static_cast<size_t>(std::clamp(wanted, 1.0, double{wire::kCallsMax}));
  // Every slot has its turn before one comes again.
  const auto slots = static_cast<uint32_t>(std::min(calls, filled.masters.size()));
  const std::vector<uint32_t> round = RandomOrder(filled.masters.size(), slots);
  std::vector<uint32_t> order(calls);
  for (size_t i = 0; i < calls; ++i) order[i] = round[i % slots];
  sustained->calls_per_block = static_cast<int>(calls);
  // A reference beside a native candidate keeps nothing: results of so many calls would not fit.
  looks_at_opponent_ = true;
  PairSamples blocks;
  ::poll(nullptr, 0, kRestMs);
  const int64_t begin_ns = MonotonicNs();
  const auto spent_s = [&] { return static_cast<double>(MonotonicNs() - begin_ns) / 1e9; };
  do {
    setup_.live.Poison(side.host->outputs);
    auto time = RunFilled(side, order, &blocks);
    if (!time && time.error().kind == HostTrouble::Kind::kVoid) continue;
    if (!time) return TroubleOf(side, time.error());
    setup_.sustains(side.is_candidate, std::min(1.0, spent_s() / seconds));
  } while (spent_s() < seconds || blocks.block_ns.empty());
  looks_at_opponent_ = false;
  const double running_ns = std::accumulate(blocks.block_ns.begin(), blocks.block_ns.end(), 0.0);
  sustained->running_share = std::min(1.0, running_ns / 1e9 / spent_s());
  for (size_t i = 0; i < blocks.block_ns.size(); ++i)
    sustained->block_ns.push_back(blocks.block_ns[i] - blocks.settle_ns[i]);
  sustained->sm_mhz = std::move(blocks.sm_mhz);
  sustained->clock_limits = std::move(blocks.clock_limits);
  sustained->time_ns = SustainedCallNs(sustained->block_ns, sustained->calls_per_block);
  if (!side.is_candidate || Check(side, round, filled)) return true;
  // Where a block has one call this may be the first time that it shows.
  if (!UsesResultsAgain(side, order, filled)) return false;
  *sustained = {};
  return SustainSide(side, seconds, filled, sustained);
}

}  // namespace assay
