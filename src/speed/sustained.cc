#include "speed/sustained.h"

#include <poll.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/median.h"
#include "base/trace.h"
#include "machine/machine.h"
#include "machine/meter.h"
#include "rules/sustained.h"
#include "speed/host_side.h"
#include "speed/pair_hosts.h"

namespace assay {
namespace {

// Between blocks the machine rests: they are long enough for that to be a small part.
constexpr double kSustainedBlockNs = 20e6;
// Before each side, so that the second begins with clocks as high as the first did.
constexpr int kRestMs = 1000;
// The pair whose hosts these are: one that starts none beyond its own.
constexpr int kSustainedPair = kPairsMin - 1;

// Runs blocks until the time is over.
HostResult<SustainedSide> RunBlocks(GateParts& parts, Side& side, std::span<const uint32_t> order) {
  const double seconds = parts.terms.sustained_s;
  PairBlocks blocks;
  ::poll(nullptr, 0, kRestMs);
  const int64_t begin_ns = MonotonicNs();
  const auto spent_s = [&] { return static_cast<double>(MonotonicNs() - begin_ns) / 1e9; };
  do {
    side.Poison();
    // A reference beside a native candidate keeps nothing: results of so many calls would not fit.
    const auto block = parts.exchange.RunPrepared(side, order, {true, &blocks});
    if (!block && block.error().kind == HostTrouble::Kind::kVoid) continue;
    if (!block) return TroubleOf(side, block.error());
    parts.terms.sustains(side.is_candidate(), std::min(1.0, spent_s() / seconds));
  } while (spent_s() < seconds || blocks.samples.block_ns.empty());
  PairSamples& samples = blocks.samples;
  SustainedSide sustained;
  const double running_ns = std::accumulate(samples.block_ns.begin(), samples.block_ns.end(), 0.0);
  sustained.calls_per_block = static_cast<int>(order.size());
  sustained.running_share = std::min(1.0, running_ns / 1e9 / spent_s());
  for (size_t i = 0; i < samples.block_ns.size(); ++i)
    sustained.block_ns.push_back(samples.block_ns[i] - samples.settle_ns[i]);
  sustained.sm_mhz = std::move(samples.sm_mhz);
  sustained.clock_limits = std::move(samples.clock_limits);
  sustained.time_ns = SustainedCallNs(sustained.block_ns, sustained.calls_per_block);
  return sustained;
}

HostResult<std::optional<SustainedRecord>> SustainBoth(GateParts& parts, Side& reference,
                                                       Side& candidate) {
  SustainedRecord record;
  record.seconds = parts.terms.sustained_s;
  const bool candidate_first = parts.Toss();
  for (const bool is_candidate : {candidate_first, !candidate_first}) {
    Side& side = is_candidate ? candidate : reference;
    const auto filled = [&] {
      const Span span("fill slots");
      const Meter meter(&parts.ledger.spent.fill_ns);
      return parts.inputs.Fill(ValuesOf(side), parts.length.slots, parts.length.slots);
    }();
    if (!filled) return OpponentsTrouble(filled.error());
    auto sustained = SustainSide(parts, side, *filled);
    if (!sustained) return std::unexpected(sustained.error());
    if (!*sustained) return std::nullopt;
    (is_candidate ? record.candidate : record.reference) = std::move(**sustained);
  }
  return record;
}

HostResult<std::optional<SustainedRecord>> SustainStarted(const Gate2Setup& setup, GateParts& parts,
                                                          std::optional<LiveHost>* host) {
  parts.replays.Stop();
  setup.values.live.Clear();
  auto opponent = StartHosts(setup, kSustainedPair, parts.random, &parts.ledger.spent, host);
  if (!opponent) return std::unexpected(opponent.error());
  if (auto alone = MeasureAlone(setup.sides, &parts.budget); !alone)
    return std::unexpected(alone.error());
  if (!MayReadResults(setup, *opponent->host(), **host)) parts.copies.CopyBoth();
  const BoundThread bound_judge(
      PlanCores(MeasuringCpus(), setup.terms.threads, kSustainedPair).judge);
  setup.values.pool.BeginProcess();
  HostSide reference(*opponent->host(), false, setup.values, setup.terms.call_timeout_s);
  HostSide candidate(**host, true, setup.values, setup.terms.call_timeout_s);
  return SustainBoth(parts, reference, candidate);
}

}  // namespace

HostResult<std::optional<SustainedSide>> SustainSide(GateParts& parts, Side& side,
                                                     const FilledSlots& filled) {
  const Ledger& ledger = parts.ledger;
  const double call_ns =
      std::max(1.0, Median(side.is_candidate() ? ledger.candidate_ns : ledger.reference_ns));
  const double wanted = std::ceil(kSustainedBlockNs / call_ns);
  // A second call in a slot would find what the first left in the inputs that forward changes.
  const double most = parts.inputs.Limits().changes_inputs
                          ? static_cast<double>(filled.masters.size())
                          : double{wire::kCallsMax};
  const auto calls = static_cast<size_t>(std::clamp(wanted, 1.0, most));
  // Results are copied but once, so this runs twice at most.
  for (;;) {
    // Every slot has its turn before one comes again.
    const auto slots = static_cast<uint32_t>(std::min(calls, filled.masters.size()));
    const std::vector<uint32_t> round = RandomOrder(filled.masters.size(), slots, parts.random);
    std::vector<uint32_t> order(calls);
    for (size_t i = 0; i < calls; ++i) order[i] = round[i % slots];
    auto sustained = RunBlocks(parts, side, order);
    if (!sustained) return std::unexpected(sustained.error());
    if (!side.is_candidate()) return std::move(*sustained);
    // If a block has one call, this may be the first time that it shows.
    const auto checked = parts.exchange.Check(side, {order, round}, filled, true);
    if (checked.wrong) return std::nullopt;
    if (!checked.copies_now) return std::move(*sustained);
  }
}

HostResult<std::optional<SustainedRecord>> Sustain(const Gate2Setup& setup, GateParts& parts) {
  const Span span("sustain");
  std::optional<LiveHost> candidate;
  auto record = SustainStarted(setup, parts, &candidate);
  EndHosts(setup, record.has_value(), std::move(candidate));
  return record;
}

}  // namespace assay
