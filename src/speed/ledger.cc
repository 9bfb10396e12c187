#include "speed/ledger.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/median.h"
#include "rules/head_start.h"

namespace assay {
namespace {

// Exchanges that may be repeated, per measured one and in any case; where more are disturbed the
// machine is too busy for a decision.
constexpr int kRepeatsPerExchange = 1;
constexpr int kRepeatsFree = 8;

double ShareOf(int part, int of) { return of == 0 ? 0 : static_cast<double>(part) / of; }

}  // namespace

void PairBlocks::Add(bool is_candidate, const BlockResult& block, int64_t settle_ns) {
  samples.order += is_candidate ? 'c' : 'r';
  samples.block_ns.push_back(block.time_ns);
  samples.settle_ns.push_back(settle_ns);
  uncharged_ns.push_back(block.uncharged_ns);
  look_ns.push_back(block.look_ns);
}

void PairBlocks::AddClock(const ClockState& clock) {
  samples.sm_mhz.push_back(clock.sm_mhz);
  for (const std::string& limit : ClockLimitNames(clock.limits))
    if (std::find(samples.clock_limits.begin(), samples.clock_limits.end(), limit) ==
        samples.clock_limits.end())
      samples.clock_limits.push_back(limit);
}

void PairBlocks::DropLast(size_t count) {
  const size_t kept = samples.order.size() - count;
  samples.order.resize(kept);
  samples.block_ns.resize(kept);
  samples.settle_ns.resize(kept);
  samples.sm_mhz.resize(std::min(samples.sm_mhz.size(), kept));
  uncharged_ns.resize(kept);
  look_ns.resize(kept);
}

void CandidateChecks::Count(int64_t count, double largest_error_ratio) {
  calls += count;
  error_ratio = std::max(error_ratio, largest_error_ratio);
}

void CandidateChecks::Add(const BlockCheck& check) {
  Count(check.calls, check.error_ratio);
  if (check.wrong) wrong = check.wrong;
}

void Ledger::AddPair(PairBlocks pair, std::span<const RoundTimes> times) {
  for (const double time_ns : ReferenceNs(times)) reference_ns.push_back(time_ns);
  for (const double time_ns : CandidateNs(times)) candidate_ns.push_back(time_ns);
  wake_excess_ns.push_back(MedianExcessNs(pair.samples.order, pair.uncharged_ns));
  samples.push_back(std::move(pair.samples));
}

void Ledger::AddSteps(const StepTimes& times) {
  const bool stepped = times.reference_step_ns > 0 && times.candidate_step_ns > 0;
  ++disturbances.pairs_stepped;
  if (!stepped) ++disturbances.pairs_without_step;
  if (!stepped) return;
  steps.push_back(times);
  samples.back().alone = CallsAlone{std::llround(times.reference_step_ns),
                                    std::llround(times.candidate_step_ns), 0, 0};
}

void Ledger::AddCopy(bool is_candidate, const BlockResult& block, size_t calls) {
  const auto copy_ns = static_cast<double>(std::clamp<int64_t>(block.settle_ns, 0, block.time_ns));
  (is_candidate ? candidates_copy_ns : opponents_copy_ns)
      .push_back(copy_ns / static_cast<double>(calls));
}

bool Ledger::MustRepeat(bool disturbed) {
  Disturbances& so_far = disturbances;
  ++so_far.exchanges;
  if (!disturbed) return false;
  const int counted = so_far.exchanges - so_far.repeated;
  if (so_far.repeated < kRepeatsFree + kRepeatsPerExchange * counted) {
    ++so_far.repeated;
    return true;
  }
  ++so_far.disturbed;
  return false;
}

void Ledger::ForgetPairs() {
  reference_ns.clear();
  candidate_ns.clear();
  samples.clear();
  wake_excess_ns.clear();
  steps.clear();
  launched.clear();
}

double Ledger::DisturbedShare() const {
  return std::max(ShareOf(disturbances.disturbed, disturbances.exchanges),
                  ShareOf(disturbances.pairs_without_step, disturbances.pairs_stepped));
}

double Ledger::RepeatedShare() const {
  return ShareOf(disturbances.repeated, disturbances.exchanges);
}

LaunchedTimes Ledger::Launched() const {
  std::vector<double> reference, candidate;
  for (const CallTimes& times : launched) {
    reference.push_back(times.reference_ns);
    candidate.push_back(times.candidate_ns);
  }
  return {Median(std::move(reference)), Median(std::move(candidate))};
}

std::vector<double> ReferenceNs(std::span<const RoundTimes> times) {
  std::vector<double> found;
  for (const RoundTimes& round : times)
    found.insert(found.end(), {round.reference_ns[0], round.reference_ns[1]});
  return found;
}

std::vector<double> CandidateNs(std::span<const RoundTimes> times) {
  std::vector<double> found;
  for (const RoundTimes& round : times)
    found.insert(found.end(), {round.candidate_ns[0], round.candidate_ns[1]});
  return found;
}

}  // namespace assay
