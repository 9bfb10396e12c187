#include "speed/pair_hosts.h"

#include <utility>

#include "base/clock.h"
#include "base/trace.h"
#include "machine/machine.h"
#include "machine/meter.h"

namespace assay {
namespace {

HostResult<void> BeginHosts(const Sides& sides, int pair_index, SpentTime* spent) {
  if (!sides.begin_hosts) return {};
  const Meter meter(&spent->start_ns);
  auto begun = sides.begin_hosts(pair_index);
  if (!begun) return OpponentsTrouble(begun.error());
  return begun;
}

}  // namespace

HostResult<Opponent> GetOpponent(const Sides& sides, int pair_index, SpentTime* spent) {
  const Meter meter(&spent->start_ns);
  auto opponent = sides.opponent(pair_index);
  if (!opponent) return OpponentsTrouble(opponent.error());
  return opponent;
}

HostResult<Opponent> StartHosts(const Gate2Setup& setup, int pair_index, std::mt19937_64& random,
                                SpentTime* spent, std::optional<LiveHost>* candidate) {
  const Sides& sides = setup.sides;
  if (setup.values.live.MemoryIsShort()) AwaitEnding(sides, spent);
  if (auto begun = BeginHosts(sides, pair_index, spent); !begun)
    return std::unexpected(begun.error());
  std::optional<HostTrouble> trouble;
  const auto start_candidate = [&] {
    const Meter meter(&spent->start_ns);
    auto started = sides.candidate(pair_index);
    if (started)
      candidate->emplace(std::move(*started));
    else
      trouble = std::move(started.error());
  };
  // Which side starts first is chance: memory, caches and cores are not the same for who comes
  // second.
  const bool candidate_starts = random() % 2 == 0;
  if (candidate_starts) start_candidate();
  auto opponent = GetOpponent(sides, pair_index, spent);
  if (!opponent) return opponent;
  if (!candidate_starts) start_candidate();
  if (trouble) return std::unexpected(std::move(*trouble));
  // Both hosts run on this pair's cores, whichever they were started on: a warm one that shares the
  // judge's core would lose to any candidate.
  const CorePlan cores = PlanCores(MeasuringCpus(), setup.terms.threads, pair_index);
  for (LiveHost* host : {opponent->host(), &**candidate})
    if (auto bound = host->host.Bind(cores.hosts); !bound) return std::unexpected(bound.error());
  return opponent;
}

HostResult<void> MeasureAlone(const Sides& sides, Deadline* budget) {
  if (!sides.measure_alone) return {};
  const Span span("await the turn to measure");
  const int64_t begin_ns = MonotonicNs();
  auto alone = sides.measure_alone();
  budget->Extend(MonotonicNs() - begin_ns);
  return alone;
}

bool MayReadResults(const Gate2Setup& setup, const LiveHost& opponent, const LiveHost& candidate) {
  // On a device they lie in memory of the judge's.
  if (setup.values.live.on_device()) return true;
  return (!setup.forms.candidate_leaves || candidate.may_be_read) &&
         (!setup.forms.opponent_leaves || opponent.may_be_read);
}

void EndHosts(const Gate2Setup& setup, bool ran, std::optional<LiveHost> candidate) {
  if (!ran) setup.values.live.NoteTrouble();
  if (setup.sides.ending != nullptr && candidate) setup.sides.ending->Add(std::move(*candidate));
}

void AwaitEnding(const Sides& sides, SpentTime* spent) {
  if (sides.ending == nullptr) return;
  const Span span("await hosts that end");
  const Meter meter(&spent->start_ns);
  sides.ending->Await();
}

}  // namespace assay
