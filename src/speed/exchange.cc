#include "speed/exchange.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/clock.h"
#include "base/trace.h"
#include "machine/meter.h"

namespace assay {
namespace {

using Kind = HostTrouble::Kind;

// A block whose host waited longer than this share of it for a core was disturbed by other
// processes. The wait from thaw to freeze includes the wake-up itself.
constexpr double kWaitShareMax = 0.02;
constexpr int64_t kWaitFreeNs = 100'000;
constexpr int kLane = 2;  // of a trace

bool WasDisturbed(const BlockResult& block) {
  const double limit_ns = kWaitShareMax * static_cast<double>(block.time_ns);
  return static_cast<double>(block.waited_ns - kWaitFreeNs) > limit_ns;
}

}  // namespace

std::vector<uint32_t> RandomOrder(size_t slots, uint32_t calls, std::mt19937_64& random) {
  std::vector<uint32_t> order(slots);
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), random);
  order.resize(calls);
  return order;
}

HostResult<std::optional<ExchangeTimes>> Exchange::Run(Side& first, Side& second,
                                                       const ExchangeTerms& terms) {
  // Bounded: a host whose blocks are void again and again commits a foul, results are copied but
  // once, and repeats run out.
  for (;;) {
    ExchangeTimes times;
    const auto end = RunOnce(first, second, terms, &times);
    if (!end) return std::unexpected(end.error());
    if (*end == End::kDone) return times;
    if (*end == End::kWrong) return std::nullopt;
  }
}

HostResult<Exchange::End> Exchange::RunOnce(Side& first, Side& second, const ExchangeTerms& terms,
                                            ExchangeTimes* times) {
  for (Side* side : {&first, &second})
    if (auto ran = RunSide(*side, terms, times); !ran || *ran != End::kDone) {
      // Both sides run again: the first side's block does not count.
      if (ran && *ran == End::kAgain && side == &second && terms.use.blocks != nullptr)
        terms.use.blocks->DropLast(1);
      return ran;
    }
  if (terms.use.blocks == nullptr || !ledger_.MustRepeat(times->disturbed)) return End::kDone;
  terms.use.blocks->DropLast(2);
  return End::kAgain;
}

HostResult<Exchange::End> Exchange::RunSide(Side& side, const ExchangeTerms& terms,
                                            ExchangeTimes* times) {
  const auto filled = [&] {
    const Span span("fill slots");
    const Meter meter(&ledger_.spent.fill_ns);
    return inputs_.Fill(ValuesOf(side), terms.slots, terms.calls);
  }();
  if (!filled) return OpponentsTrouble(filled.error());
  const std::vector<uint32_t> order = RandomOrder(filled->masters.size(), terms.calls, random_);
  auto block = RunBlock(side, order, terms.use);
  if (!block && block.error().kind == Kind::kVoid) return End::kAgain;
  if (!block) return TroubleOf(side, block.error());
  (side.is_candidate() ? times->call.candidate_ns : times->call.reference_ns) = block->call_ns;
  times->disturbed = times->disturbed || block->disturbed;
  return CheckSide(side, order, *filled, terms.use);
}

HostResult<BlockTime> Exchange::RunBlock(Side& side, std::span<const uint32_t> order,
                                         const BlockUse& use) {
  {
    const Span span("poison and flush");
    const Meter meter(&ledger_.spent.fill_ns);
    side.Poison();
    side.Flush(order);
  }
  const bool busy = inputs_.TakeBusy();
  auto block = RunPrepared(side, order, use);
  if (block && busy) block->disturbed = true;
  return block;
}

BlockMode Exchange::ModeOf(const Side& side, bool looked_at) const {
  return {copies_.ResultsOf(side.is_candidate(), looked_at), replays_.replaying()};
}

HostResult<BlockTime> Exchange::RunPrepared(Side& side, std::span<const uint32_t> order,
                                            const BlockUse& use) {
  const bool is_candidate = side.is_candidate();
  const BlockMode mode = ModeOf(side, use.looked_at);
  const int64_t begin_ns = MonotonicNs();
  auto ran = side.RunBlock(order, mode);
  if (!ran) return std::unexpected(ran.error());
  const BlockResult& block = ran->result;
  // Both may be charged (speed/charges.h).
  const int64_t ready_ns = begin_ns + block.ready_ns, done_ns = ready_ns + block.time_ns;
  AddSpan(is_candidate ? "the candidate wakes" : "the opponent wakes", begin_ns, ready_ns, kLane);
  AddSpan(is_candidate ? "a look at the candidate's outputs" : "a look at the opponent's outputs",
          done_ns, done_ns + block.look_ns, kLane);
  if (block.must_copy) {
    copies_.CopyFromNowOn(is_candidate);
    return HostFailed(Kind::kVoid, "these results must be copied");
  }
  replays_.Note(ran->replayed);
  ledger_.spent.timed_ns += block.time_ns;
  const int64_t settle_ns = copies_.SubtractsSettle(is_candidate)
                                ? std::clamp<int64_t>(block.settle_ns, 0, block.time_ns)
                                : 0;
  if (use.blocks != nullptr) {
    use.blocks->Add(is_candidate, block, settle_ns);
    if (mode.results == wire::Results::kIntoSlots)
      ledger_.AddCopy(is_candidate, block, order.size());
    if (const auto clock = side.Clock()) use.blocks->AddClock(*clock);
  }
  return BlockTime{
      static_cast<double>(block.time_ns - settle_ns) / static_cast<double>(order.size()),
      block.look_ns, block.uncharged_ns, WasDisturbed(block)};
}

HostResult<Exchange::End> Exchange::CheckSide(Side& side, std::span<const uint32_t> order,
                                              const FilledSlots& filled, const BlockUse& use) {
  const Called called{order, order};
  // Warm-up blocks check the opponent, too: a reference that disagrees with itself cannot be judged
  // against.
  if (side.is_candidate() || use.looked_at) {
    // A side that uses its results again does so in the first blocks already, which do not count.
    Checked checked = Check(side, called, filled, use.blocks == nullptr);
    if (checked.copies_now) {
      // A wrong side is not to pass for one whose results were written over.
      auto ran = side.RunUncounted(order, ModeOf(side, false));
      if (!ran) return TroubleOf(side, ran.error());
      checked = Check(side, called, filled, false);
      if (!checked.wrong) return End::kAgain;
    }
    if (checked.wrong && side.is_candidate()) return End::kWrong;
    if (checked.wrong)
      return OpponentsTrouble(
          HostFailed(Kind::kFailed,
                     "the baseline's own outputs are not the expected ones: " + checked.wrong->hint)
              .error());
  }
  if (!side.is_candidate()) {
    // Outputs that the judge has read make the next block faster: by 0.87% at 32 us a call
    // (bench/results/cpu-2core/aa_bias_inputs_flushed.jsonl).
    const Meter meter(&ledger_.spent.fill_ns);
    side.Read();
  }
  return End::kDone;
}

Exchange::Checked Exchange::Check(Side& side, const Called& called, const FilledSlots& filled,
                                  bool learns) {
  const BlockCheck check = [&] {
    const Span span("check a block");
    const Meter meter(&ledger_.spent.fill_ns);
    return side.Check(called.slots, filled);
  }();
  if (check.wrong && learns && LostResults(side, called.order, filled)) {
    // Its calls count, and what was wrong with them does not.
    if (side.is_candidate()) ledger_.checks.Count(check.calls, 0);
    return {std::nullopt, true};
  }
  if (side.is_candidate()) ledger_.checks.Add(check);
  return {check.wrong, false};
}

// Returns true if the side left its results and later calls wrote over those of earlier ones.
bool Exchange::LostResults(Side& side, std::span<const uint32_t> order, const FilledSlots& filled) {
  const bool is_candidate = side.is_candidate();
  if (order.size() < 2 || copies_.ResultsOf(is_candidate, false) != wire::Results::kLeft)
    return false;
  if (side.WroteAstray(order)) return false;
  const uint32_t last = order.back();
  const BlockCheck check = side.CheckOne(last, filled.masters[last], filled.ProbeIn(last));
  // If it is wrong, too, the check of the block says so.
  const bool right = !check.wrong;
  if (is_candidate) ledger_.checks.Count(check.calls, right ? check.error_ratio : 0);
  if (right) copies_.CopyFromNowOn(is_candidate);
  return right;
}

}  // namespace assay
