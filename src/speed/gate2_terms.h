// The terms of a speed gate: the values that it runs on, the source of both sides' hosts, the facts
// that follow from their forms, and the work that it may take.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "builders/build_candidate.h"
#include "correctness/draw_set.h"
#include "model/machine_profile.h"
#include "rules/gate1.h"
#include "rules/gate2.h"
#include "rules/pair_budget.h"
#include "rules/pairs_so_far.h"
#include "rules/steps.h"
#include "sides/ending_hosts.h"
#include "sides/live_host.h"
#include "values/value_pool.h"

namespace assay {

class OwnKernels;  // library_kernels.h

// The values of timed calls, and the rule by which outputs are compared with the expected ones.
struct GateValues {
  Oracle& oracle;
  LiveSlots& live;
  ValuePool& pool;
  CompareRule rule = {};
  const DrawSet* draws = nullptr;          // gate 1's, of which the reference's errors are known
  const OracleOptions* options = nullptr;  // of a second reference (correctness/rounding.h)
};

// The opponent of a pair: a warm reference host, or a fresh host of the other candidate.
struct Opponent {
  LiveHost* warm = nullptr;     // valid until the next call
  std::optional<LiveHost> own;  // a fresh host, instead
  LiveHost* host() { return own ? &*own : warm; }
};

// The source of both sides' hosts.
struct Sides {
  std::function<HostResult<Opponent>(int pair_index)> opponent;
  std::function<HostResult<LiveHost>(int pair_index)> candidate;
  // If set, called before both: begins to start the hosts that a pair lacks, so that one side's do
  // not wait for the other's.
  std::function<HostResult<void>(int pair_index)> begin_hosts;
  // If set, called before anything is measured: starts the hosts of both sides of the first pairs,
  // as far as they fit. What fails is told by the calls above.
  std::function<void()> start_first;
  // If set, called once both hosts are there: waits until no other judge uses the device. A host
  // that starts ends that.
  std::function<HostResult<void>()> measure_alone;
  EndingHosts* ending = nullptr;  // takes the hosts of pairs that are done; null: they end at once
};

// The facts that follow from the forms of both sides.
struct Forms {
  // The reference's copying into slots is taken off its time: the candidate writes there directly,
  // and the reference's host is trusted to say how long it took.
  bool subtract_settle = false;
  // Both copy, and the opponent's host is trusted to say how long that took.
  bool trusts_copies = false;
  // Python hosts leave results where forward put them, and the judge may read their memory, or has
  // lent it, on a device: nobody copies.
  bool candidate_leaves = false, opponent_leaves = false;
  bool candidate_in_python = false;
  // Code of the candidate's runs in its host: what it could have done before a block's clock is
  // charged. In the device form the host is the judge's own, and its work begins at a launch.
  bool foreign_code = true;
  // The opponent is the problem's reference, which was seen to leave its inputs alone.
  bool trusts_opponent = false;
  // Neither side's host runs a candidate's code, and both are on a device.
  bool device_forms = false;
  // Both hosts run code of the judge's and of the problem's alone, and are on a device: blocks of
  // short calls are replays of CUDA graphs.
  bool may_replay = false;
  // Time that a call alone may take longer (rules/steps) [ns].
  double step_wake_ns = kStepWakeNs;
  // The same for a win, which must hold for calls alone, beyond the baseline's (FasterInARow) [ns].
  double alone_ns = kAloneNs;
};

// Returns the forms' facts, but for step_wake_ns and alone_ns. `against`: the
// opponent's form; nullopt for `baseline`, a reference in PyTorch. `replay`: blocks may be replays.
Forms FormsOf(CandidateForm form, std::optional<CandidateForm> against, const std::string& baseline,
              bool replay, bool on_device);

// Terms::pair_s on a device.
inline constexpr double kDevicePairS = 0.06;

// The decision that is asked for, and the work that it may take.
struct Terms {
  double threshold = 1;
  bool futility = false;             // a candidate that cannot win is not measured further
  double bound = 0;                  // as in SpeedRule
  bool libraries_forbidden = false;  // faster is then only what was seen to do without
  // On a device, where that is looked at: which of its calls' kernels are the candidate's.
  const OwnKernels* own_kernels = nullptr;
  std::span<const NoisePoint> noise;  // this machine's own, if it was measured
  double call_timeout_s = 10;
  int threads = 1;
  int clear_pairs = kClearPairs;  // that a clear case gets
  double pair_s = 0.3;            // rounds are added while a pair's take less than this
  double budget_s = 60;           // no new pair is begun after this
  double started_before_s = 0;    // since hosts of the first pairs began to start, before the gate
  double candidate_call_ns = 0;   // rough, from gate 1
  double sustained_s = 0;         // after the decision, both sides run so long without a pause
  std::function<void(const PairsSoFar&)> progress;
  std::function<void(bool candidate, double fraction)> sustains;  // if sustained_s is over 0
};

struct Gate2Setup {
  GateValues values;
  Sides sides = {};
  Forms forms = {};
  Terms terms = {};
};

}  // namespace assay
