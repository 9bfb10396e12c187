// All that a speed gate has measured so far. Plain data, with small functions that keep its lists
// side by side.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/verdict.h"
#include "rules/gate2.h"
#include "rules/steps.h"
#include "speed/block_length.h"
#include "speed/side.h"

namespace assay {

// Time spent, by kind [ns].
struct SpentTime {
  int64_t start_ns = 0;  // hosts starting
  int64_t fill_ns = 0;   // filling, poisoning, flushing and checking slots
  int64_t timed_ns = 0;  // inside blocks
};

// The measured blocks of one pair, in the order they ran.
struct PairBlocks {
  PairSamples samples;
  // Beside samples.block_ns, as BlockResult has them.
  std::vector<int64_t> uncharged_ns, look_ns;

  // `settle_ns`: taken off the block's time.
  void Add(bool is_candidate, const BlockResult& block, int64_t settle_ns);
  void AddClock(const ClockState& clock);
  // Drops the last blocks, which are repeated. The reasons that held the clock down in them are
  // kept: they held in this pair.
  void DropLast(size_t count);
};

// The checks of the candidate's timed calls.
struct CandidateChecks {
  int64_t calls = 0;
  double error_ratio = 0;          // the largest
  std::optional<CallCheck> wrong;  // the first wrong call

  // Adds compared calls, whatever came of them.
  void Count(int64_t count, double largest_error_ratio);
  void Add(const BlockCheck& check);
};

// Exchanges and pairs that other processes disturbed.
struct Disturbances {
  int exchanges = 0;  // that were measured, repeated ones included
  int repeated = 0;
  int disturbed = 0;  // and not repeated: repeats had run out
  int pairs_stepped = 0;
  int pairs_without_step = 0;  // without one undisturbed step of each kind
};

struct Ledger {
  // Of one call, one a measured block; the candidate's with its charges [ns].
  std::vector<double> reference_ns, candidate_ns;
  std::vector<PairSamples> samples;    // one a pair
  std::vector<double> wake_excess_ns;  // one a pair: how much longer the candidate takes to wake
  std::vector<StepTimes> steps;        // one a pair that has undisturbed steps
  std::vector<CallTimes> launched;     // one a pair of replays: calls that are launched one by one
  // Copying of a call's results, by the hosts' word; of dropped blocks, too [ns].
  std::vector<double> opponents_copy_ns, candidates_copy_ns;
  int rounds = 0;  // of the last pair
  Disturbances disturbances;
  CandidateChecks checks;
  SpentTime spent;

  // Adds a pair's blocks and the times of its calls.
  void AddPair(PairBlocks pair, std::span<const RoundTimes> times);
  // Adds the last pair's steps; without an undisturbed step of each side that is noted alone.
  void AddSteps(const StepTimes& times);
  // Adds the host's word on copying results in a block of so many calls.
  void AddCopy(bool is_candidate, const BlockResult& block, size_t calls);
  // Notes a measured exchange. Returns true if it must be repeated because other processes
  // disturbed it.
  bool MustRepeat(bool disturbed);
  // Forgets the measurements of all pairs. Checks, copies, disturbances and time spent are kept.
  void ForgetPairs();

  // The share of measured exchanges that were disturbed, repeats having run out; or that of pairs
  // without an undisturbed step, if it is larger.
  double DisturbedShare() const;
  // The share of measured exchanges that were repeated because they were disturbed.
  double RepeatedShare() const;
  // The medians of the pairs.
  LaunchedTimes Launched() const;
};

// The times of a pair's calls: of one side's, by the blocks of all rounds [ns].
std::vector<double> ReferenceNs(std::span<const RoundTimes> times);
std::vector<double> CandidateNs(std::span<const RoundTimes> times);

}  // namespace assay
