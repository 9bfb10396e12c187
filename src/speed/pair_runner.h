// One pair of gate 2: a fresh host of the candidate's beside one of its opponent's, and what
// happens between them: interleaved blocks on the same fresh values, every call checked.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/median.h"
#include "rules/steps.h"
#include "speed/gate2_run.h"

namespace assay {

// What a block may take beyond the time-out of one call: blocks of several calls are made to last
// a fifth of a second at most.
inline constexpr double kBlockGraceS = 2;

// One pair at a time: a candidate's host and its opponent's, and what happens between them.
class PairRunner {
 public:
  // Once `budget` has expired, short blocks count as they are. What is looked at besides is added
  // to it.
  PairRunner(const Gate2Setup& setup, Deadline* budget, Gate2Result* result)
      : setup_(setup),
        budget_(budget),
        result_(result),
        random_(std::random_device{}()),
        watched_pair_(static_cast<int>(random_() % kPairsMin)) {}

  // Chooses the calls of a block from the opponent's time for one call and the candidate's rough
  // one.
  HostResult<void> Calibrate();
  // Runs pair `index`; its log ratio, or nullopt when a timed call was wrong (result->wrong says
  // how), or when its blocks were too short (grew()).
  HostResult<std::optional<double>> Run(int index);
  // Runs both sides for `seconds` each without a pause, in hosts of their own, into
  // result->sustained. False: a call of the candidate was wrong (result->wrong says how).
  HostResult<bool> Sustain(double seconds);
  // The pair just run had blocks that were too short to count: the next ones have more calls.
  bool grew() const { return grew_; }
  // All pairs are forgotten, the one just run too: the next one is the first again.
  bool starts_over() const { return starts_over_; }
  uint32_t calls() const { return calls_; }
  double call_ns() const { return call_ns_; }
  int rounds() const { return rounds_; }
  int repeated() const { return repeated_; }
  // Share of the measured exchanges that were disturbed, repeats having run out; or that of pairs
  // without one undisturbed step, where it is larger.
  double disturbed_share() const;
  const std::vector<StepTimes>& steps() const { return steps_; }
  // Where blocks were replays: what calls take without, the medians of the pairs.
  std::optional<LaunchedTimes> launched() const;
  const std::vector<double>& reference_ns() const { return reference_ns_; }
  const std::vector<double>& candidate_ns() const { return candidate_ns_; }
  // The candidate's results are copied within its time, though its opponent's are not: it uses
  // memory for them again. And whether results of both sides are.
  bool candidate_copies() const { return candidate_copies_; }
  bool both_copy() const { return both_copy_; }
  // What copying a call's results takes the opponent, or the candidate, as its host says; the
  // median of all blocks. The candidate's may be any number.
  double opponents_copy_ns() const { return Median(opponents_copies_ns_); }
  double candidates_copy_ns() const { return Median(candidates_copies_ns_); }

 private:
  struct Side {
    LiveHost* host;
    bool is_candidate;
  };
  // A side's trouble, which says whose it is.
  static std::unexpected<HostTrouble> TroubleOf(const Side& side, HostTrouble trouble) {
    if (!side.is_candidate) return OpponentsTrouble(std::move(trouble));
    return std::unexpected(std::move(trouble));
  }
  // What the slots were filled with, from slot 0 on.
  struct FilledSlots {
    std::vector<uint32_t> masters;
    const Draw* probe = nullptr;  // an unusual draw, in slot `probe_slot`
    uint32_t probe_slot = 0;
  };
  // Where the results of this side's next block go.
  wire::Results ResultsOf(Side side) const;
  // It uses their memory again: they are copied within its time. The opponent's as well as the
  // candidate's, where it is the opponent.
  void CopyFromNowOn(Side side);
  // Once a block was wrong that left its results: whether these were written over by later calls,
  // of which the last one's are right. They are copied from now on then, and nothing is held
  // against it.
  bool UsesResultsAgain(Side side, std::span<const uint32_t> order, const FilledSlots& filled);
  // Whether it is right on these values, in a block that does not count, once its results are
  // copied: a wrong one is not to pass for one that was written over.
  HostResult<bool> IsRightInSlots(Side side, std::span<const uint32_t> order,
                                  const FilledSlots& filled);
  enum class Replays { kUntried, kYes, kNo };
  HostResult<std::optional<double>> RunPair(int index, std::optional<HostResult<LiveHost>>* host);
  // Starts the hosts of both sides, on the cores of this pair.
  HostResult<Opponent> StartHosts(int index, std::optional<HostResult<LiveHost>>* candidate);
  // What follows on a pair, whatever came of it.
  void EndPair(bool ran, std::optional<HostResult<LiveHost>>* candidate);
  HostResult<bool> SustainPair(double seconds, std::optional<HostResult<LiveHost>>* host);
  HostResult<bool> SustainSide(Side side, double seconds, const FilledSlots& filled,
                               SustainedSide* sustained);
  HostResult<void> BeginHosts(int index);
  HostResult<Opponent> GetOpponent(int index);
  HostResult<FilledSlots> FillSlots(uint32_t calls);
  double block_ns() const;  // how long a block of the faster side is to last
  // Sets calls and slots of a block from what one call of each side takes [ns].
  uint32_t PoolRoom() const;
  uint32_t CallsFor(double reference_ns, double candidate_ns) const;
  void SetCalls(uint32_t calls);
  void PrepareSlots(uint32_t count);
  // True when blocks of calls that take so long [ns] are too short, and longer ones can be had: the
  // next ones have more calls.
  bool MoreCalls(double reference_ns, double candidate_ns);
  // By a block that does not count, before the first that does: calls in a row take less than the
  // single ones that blocks were laid out by. True: the next ones are longer, in these hosts.
  HostResult<bool> Lengthen(const RoundTimes& block, Side early, Side late);
  // The same by the blocks of the pair just run, whose times are forgotten then.
  bool Grow();
  // Fills the slots once and runs both sides on them. False: a call of the candidate was wrong.
  HostResult<bool> Exchange(Side first, Side second, uint32_t calls, double* reference_ns,
                            double* candidate_ns, PairSamples* samples);
  HostResult<double> RunSide(Side side, std::span<const uint32_t> order, PairSamples* samples);
  HostResult<double> RunFilled(Side side, std::span<const uint32_t> order, PairSamples* samples);
  // Whether this pair's blocks are replays, by exchanges that do not count; the first pair decides
  // for all. False: a call of the candidate was wrong.
  HostResult<bool> SettleReplays(Side early, Side late);
  // The times of a block's calls as in blocks that count, of an exchange that nobody disturbed
  // where a few tries have one. False: as above.
  HostResult<bool> TimeBlocks(Side early, Side late, LaunchedTimes* times);
  // A host that captured its calls before could not do so again: all pairs so far are forgotten,
  // and no block is replayed from now on.
  std::nullopt_t StartOver();
  // True when the exchange just run must be repeated because other processes disturbed it.
  bool MustRepeat(bool measured);
  HostResult<void> WarmUp(Side side);
  // All that comes before the blocks that count. False: a call of the candidate was wrong.
  HostResult<bool> WarmUpPair(Side early, Side late);
  // Calls one at a time, each with fresh values in its own slot alone. False: one was wrong.
  HostResult<bool> RunSteps(Side reference, Side tried);
  // Up to `count` steps, all with the weights of one batch or each with its own.
  HostResult<bool> RunStepsOf(Side reference, Side tried, uint32_t count, bool own_weights,
                              ShortestStep* of_reference, ShortestStep* of_candidate);
  // A step of one side, added to `shortest`, but for one that was void.
  HostResult<bool> RunStep(Side side, uint32_t slot, uint32_t master, ShortestStep* shortest);
  void AwaitEnding();
  // Adds what the candidate could have done before the clock started to the times of this pair.
  void ChargeHeadStart(PairSamples* samples, std::vector<RoundTimes>* rounds);
  // Blocks that do not count, in which the judge looks where the time goes.
  HostResult<void> Watch(Side tried);
  void WatchOnDevice(Side tried);
  // One call's outputs. `probe`: the unusual draw that it was given, or nullptr.
  bool CheckOne(Side side, uint32_t slot, uint32_t master, const Draw* probe,
                const std::optional<CallCheck>& settled = std::nullopt);
  // Those of all calls, and that nothing else was written.
  bool Check(Side side, std::span<const uint32_t> order, const FilledSlots& filled);
  // `calls` of the slots [0, slots), in random order.
  std::vector<uint32_t> RandomOrder(size_t slots, uint32_t calls);

  const Gate2Setup& setup_;
  Deadline* budget_;
  Gate2Result* result_;
  std::mt19937_64 random_;
  int watched_pair_;  // the candidate is watched at the end of this one
  uint32_t calls_ = 1, calls_spare_ = 1, slots_ = 2;
  double call_ns_ = 0;
  int rounds_ = 0;                  // of the pair that ran last
  bool block_disturbed_ = false;    // one of the exchange in hand
  bool looks_at_opponent_ = false;  // at its outputs, once the exchange in hand is run
  Replays replays_ = Replays::kUntried;
  bool replaying_ = false;   // the blocks in hand
  bool only_times_ = false;  // the opponent's outputs are not looked at, as in blocks that count
  bool starts_over_ = false;
  bool replay_missed_ = false;  // a host ran one of them call by call
  std::vector<double> launched_reference_ns_, launched_candidate_ns_;  // one a pair that replays
  bool grew_ = false;
  bool candidate_copies_ = false, both_copy_ = false;
  double error_ratio_before_ = 0;  // the block that was checked last
  int exchanges_ = 0, repeated_ = 0, disturbed_ = 0;
  int pairs_stepped_ = 0, pairs_without_step_ = 0;
  std::vector<double> reference_ns_, candidate_ns_;  // per call, one a measured block
  // The same, of dropped blocks, too.
  std::vector<double> opponents_copies_ns_, candidates_copies_ns_;
  std::vector<StepTimes> steps_;                 // one a pair
  int64_t last_look_ns_ = 0;                     // of the block that ran last
  int64_t opponents_look_ns_ = 0;                // the median in the pair in hand
  std::vector<int64_t> uncharged_ns_, look_ns_;  // beside the blocks of the pair in hand
};

}  // namespace assay
