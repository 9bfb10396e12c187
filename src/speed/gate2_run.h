// Runs gate 2: interleaved rounds over pairs of fresh hosts until the sequential test decides.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "builders/build_candidate.h"
#include "correctness/call_check.h"
#include "correctness/gate1_run.h"
#include "rules/gate2.h"
#include "rules/pair_budget.h"
#include "rules/steps.h"
#include "sides/ending_hosts.h"
#include "sides/live_host.h"
#include "values/value_pool.h"

namespace assay {

// Time spent, by kind [ns].
struct SpentTime {
  int64_t start_ns = 0;  // hosts starting
  int64_t fill_ns = 0;   // filling, poisoning, flushing and checking slots
  int64_t timed_ns = 0;  // inside blocks
};

// Where the opponent of each pair comes from: a warm reference host, or a fresh native one for
// --against.
struct Opponent {
  LiveHost* warm = nullptr;     // valid until the next call
  std::optional<LiveHost> own;  // a fresh host, instead
  LiveHost* host() { return own ? &*own : warm; }
};
using OpponentSource = std::function<HostResult<Opponent>(int pair_index)>;
class OwnKernels;  // library_kernels.h
using CandidateStarter = std::function<HostResult<LiveHost>(int pair_index)>;

// Gate2Setup::pair_s on a device.
inline constexpr double kDevicePairS = 0.06;

struct Gate2Setup {
  Gate2Setup(Oracle& oracle_in, LiveSlots& live_in, ValuePool& pool_in)
      : oracle(oracle_in), live(live_in), pool(pool_in) {}
  // What follows from the forms of both sides; `against`, the opponent's: nothing for a reference
  // in PyTorch, which is `baseline`. `replay`: blocks may be replays where they can.
  void SetForms(CandidateForm form, std::optional<CandidateForm> against,
                const std::string& baseline, bool replay);

  Oracle& oracle;
  LiveSlots& live;
  ValuePool& pool;
  CompareRule rule;
  std::span<const ReferenceError> errors;
  const OracleOptions* options = nullptr;  // of a second reference (correctness/rounding.h)
  OpponentSource opponent;
  CandidateStarter candidate;
  // Where set, asked before either: the hosts of both sides that a pair lacks begin to start, so
  // that one side's do not wait for the other's.
  std::function<HostResult<void>(int pair_index)> begin_hosts;
  // True: the reference's copying into slots is taken off its time (the candidate writes there
  // directly and the host is trusted to say how long it took). False: whoever copies does so inside
  // its times.
  bool subtract_settle = false;
  // Both copy, and the opponent's host is trusted to say how long that took.
  bool trusts_copies = false;
  // Hosts in Python that leave their results where forward put them, where the judge may read their
  // memory, or has lent it, on a device: nobody copies then.
  bool candidate_leaves = false, opponent_leaves = false;
  bool candidate_in_python = false;
  // That a call alone, and one with changed weights, may take longer (rules/steps).
  double step_wake_ns = kStepWakeNs, kept_wake_ns = kStepWakeNs;
  // On a device: what the baseline's calls take longer is allowed besides, and a win in a row must
  // hold for calls alone (FasterInARow).
  bool beside_baseline = false;
  // Code of the candidate's runs in its host: what that could have done before a block's clock is
  // charged. In the device form the host is the judge's own, and its work begins at a launch.
  bool foreign_code = true;
  // The opponent is the problem's reference, which was seen to leave its inputs alone.
  bool trusts_opponent = false;
  // Neither side's host has any, and both are on a device.
  bool device_forms = false;
  // Both hosts run code of the judge's and of the problem's alone, and are on a device: where
  // calls are short, blocks are replays of CUDA graphs.
  bool may_replay = false;
  double threshold = 1;
  bool libraries_forbidden = false;  // faster is then only what was seen to do without
  // On a device: which of its calls' kernels are the candidate's, where that is looked at.
  const OwnKernels* own_kernels = nullptr;
  std::span<const NoisePoint> noise;  // this machine's own, where it was measured
  double call_timeout_s = 10;
  int threads = 1;
  int clear_pairs = kClearPairs;  // that a clear case gets
  double pair_s = 0.3;            // rounds are added while a pair's take less than this
  double budget_s = 60;           // no new pair is begun after this
  double started_before_s = 0;    // by when hosts of the first pairs began to start before gate 2
  double candidate_call_ns = 0;   // rough, from gate 1
  double sustained_s = 0;         // after the decision, both sides run so long without a pause
  EndingHosts* ending = nullptr;  // takes the hosts of pairs that are done; null: they end at once
  std::function<void(int pairs, const SpeedEstimate&)> progress;
  std::function<void(bool candidate, double fraction)> sustains;  // where sustained_s is over 0
};

struct Gate2Result {
  BaselineResult result;
  std::vector<PairSamples> samples;
  int64_t calls_checked = 0;
  double error_ratio = 0;
  SpentTime spent;
  std::optional<SustainedRecord> sustained;
  // Set when a timed call was wrong: gate 1 failed after all.
  std::optional<CallCheck> wrong;
  // Where the candidate's time went, in one of the first pairs; or why nobody saw it.
  std::optional<LibraryTime> libraries;
  std::string libraries_unseen;
  // Set when calls in a row were computed ahead of their turn: what was seen.
  std::optional<std::string> worked_ahead;
  // What shows that it keeps work on weights; the decision is unsettled then.
  std::optional<std::string> kept_work;
};

// Errors: a host's trouble, which says whose it is.
HostResult<Gate2Result> RunGate2(const Gate2Setup& setup);

}  // namespace assay
