// The verdict: the immutable record of one judgement (docs/verdict.md, schema assay.verdict/1).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/cause.h"
#include "model/kinds.h"
#include "model/outcome.h"
#include "model/probe.h"
#include "model/profile.h"

namespace assay {

struct ProblemRecord {
  std::string name;
  std::string path;
  std::string hash;                        // SHA-256 of the file
  int level = 0;                           // 0: not in a suite
  std::string size;                        // named size, or empty
  std::map<std::string, std::string> set;  // constants that were changed, as given
  std::string dtype;                       // of the first output
  std::vector<std::string> signature;      // one line an argument: "input x float32[1024, 1024]"
  std::optional<WeightsKind> weights;      // nullopt in older records
};

// A candidate's source, by name and content.
struct CandidateFile {
  std::string path;
  std::string hash;  // SHA-256
};

struct CandidateRecord {
  std::string path;
  std::string hash;  // SHA-256 of the source
  CandidateForm form = CandidateForm::kNative;
  Language language = Language::kCpp;
  std::string trust;  // "sandboxed", "device-only"
  std::string flags;  // of the compiler
  // SHA-256 of what was built; empty: nothing was, it is in Python, or the record is older.
  std::string artifact = {};
};

// Of an element of an integer output.
struct WholeValues {
  int64_t expected = 0, got = 0;

  bool operator==(const WholeValues&) const = default;
};

struct Mismatch {
  std::string output;          // name of the argument
  std::vector<int64_t> index;  // of the first element that is wrong
  double expected = 0;
  double got = 0;
  double share_wrong = 0;                 // of the elements of that output, 0 to 1
  std::optional<WholeValues> whole = {};  // of an integer output: the values with all digits
};

// One draw of gate 1, with all that `assay explain` needs to make it again.
struct DrawRecord {
  std::string kind;  // "ordinary", "large-offset"...
  uint64_t seed = 0;
  std::string result;                           // "passed", "failed", "differs", "dropped"
  std::string reason;                           // for `dropped` and `failed`
  double error_ratio = 0;                       // error over its bound: up to 1 passes
  std::map<std::string, std::string> set = {};  // constants of another size than the verdict's
  bool for_time = false;                        // dropped for the time that it would take
};

// Correctness::tolerance if the problem's own check judged: then there is no error ratio.
inline constexpr std::string_view kByOwnCheck = "check";

struct Correctness {
  bool passed = false;
  int64_t calls_checked = 0;
  double error_ratio = 0;  // largest error over its bound, over all checked calls
  double max_abs_error = 0;
  std::string precision_class;  // by the errors
  std::string required_class;
  std::string tolerance;  // "error-ratio", "allclose:1e-4" or "check"
  std::optional<Mismatch> first_mismatch;
  std::string hint;
  Mistake mistake = Mistake::kNone;  // as the hint describes it
  // How outputs differ where inputs are NaN or infinite; empty: nowhere, or not looked at.
  std::string differs_on_special_values;
  std::string note;  // a remark on how it ran ("weights were matched by order"); may be empty
  // The treatment of weights with which a second look found it right; nullopt: none.
  std::optional<WeightsKind> right_with_weights;
  std::vector<DrawRecord> draws;
};

// The time of a call [ns] in blocks that launch their calls one by one.
struct LaunchedTimes {
  double reference_ns = 0, candidate_ns = 0;
};

// Why a decision is `unsettled`.
struct WhyUnsettled {
  UnsettledCause cause = UnsettledCause::kNoise;
  double budget_s = 0;     // if the budget ended: a --budget with room for a decision; else 0
  bool disturbed = false;  // other processes took the cores, too
};

struct BaselineResult {
  double time_ns = 0;  // of one call, median over pairs
  double candidate_time_ns = 0;
  double speedup = 0;  // median over pairs of t_reference / t_candidate
  double ci_low = 0, ci_high = 0;
  double confidence = 0;        // of that interval, by exact order statistics
  std::string decision;         // "faster", "slower", "tie", "not_faster", "unsettled"
  double smallest_visible = 0;  // smallest gain that could have been seen, as a factor (1.01)
  // The largest p for which these pairs decide `faster`; 0: none.
  double certified_speedup = 0;
  // The limits of the decision, as ln-ratios: the noise floor and the margin of a clear case.
  double delta = 0, clear_margin = 0;
  double disturbed_share = 0;  // of measurements that other processes disturbed, after repeats
  int pairs = 0;
  int rounds = 0;
  int calls_per_block = 0;
  // On a GPU, if launching would be a part of the time: blocks are replays of CUDA graphs, and
  // these are the times without replays. Else nullopt.
  std::optional<LaunchedTimes> launched;
  // The sides that copy results into the judge's slots within these times: "nobody", "candidate",
  // "opponent", "both"; empty in older verdicts.
  std::string copies = "nobody";
  std::string note;  // a limit of these numbers, in one sentence; may be empty
  std::optional<WhyUnsettled> why_unsettled;  // empty in older verdicts, too
};

// Names one more result, beside those of all baselines: that of the one that is hardest to beat.
inline constexpr const char* kBestBaseline = "best";

struct Speed {
  bool passed = false;
  double threshold = 1;  // --p
  // "eager", "compiled", "compiled-reduce-overhead", "compiled-max-autotune", "best", or "against"
  std::map<std::string, BaselineResult> baselines;
  std::string headline;                  // the baseline that decides the outcome
  std::optional<CandidateFile> against;  // the opponent of --against
};

// The work that one call needs, by the problem alone.
struct Work {
  double operations = 0;        // arithmetic ones; a multiply-add counts as two
  std::string operations_from;  // "suite", "counted"; "unknown" leaves 0
  double bytes = 0;             // compulsory: inputs and parameters read once, outputs written once
  double written_bytes = 0;     // of these, the outputs
  std::string bytes_from;       // "suite", "signature"
  double unfused_bytes = 0;     // moved by the reference's operators one by one; 0: not known
  double peak_bytes = 0;        // most bytes alive inside the reference's forward; 0: not known
};

// The candidate's time beside the bound by this machine's measured ceilings.
struct Roofline {
  double bandwidth_bytes_s = 0;  // for this number of threads and this mix of reads and writes
  double rate_operations_s = 0;  // for the problem's dtype
  std::string instructions;      // that reach this rate: "avx512f"
  double empty_call_ns = 0;      // of a call that does nothing
  double bound_ns = 0;           // max of operations / rate, bytes / bandwidth and the empty call
  std::string regime;            // the largest of these: "compute", "memory", "overhead"
  double percent_of_peak = 0;    // 100 bound / the candidate's time
  double reference_percent_of_peak = 0;  // the headline baseline's
  std::string note;                      // a remark on the figures; may be empty
};

// A pair's calls that ran one at a time, each the shortest of a few [ns]; 0: not run.
struct CallsAlone {
  int64_t reference_ns = 0, candidate_ns = 0;
  // With weights that changed just before.
  int64_t reference_new_weights_ns = 0, candidate_new_weights_ns = 0;
};

// Raw block times, from which every number can be derived again.
struct PairSamples {
  std::string baseline;
  std::string order;               // one letter a block: r(eference) or c(andidate)
  std::vector<int64_t> block_ns;   // judge's clock, whole block
  std::vector<int64_t> settle_ns;  // reference blocks: time spent copying results, 0 elsewhere
  // On a GPU with NVML: the multiprocessors' clock after each block, and the reasons that held it
  // down in any of them ("power cap").
  std::vector<int> sm_mhz = {};
  std::vector<std::string> clock_limits = {};
  std::optional<CallsAlone> alone = {};  // nullopt: not run, or other processes held them up
  // The part of each block_ns that is charged to the candidate for work that it could have done
  // outside of the clock; empty: nothing is.
  std::vector<int64_t> charged_ns = {};
};

// One side of a run without pauses: block follows block, on values that repeat.
struct SustainedSide {
  int calls_per_block = 0;
  double time_ns = 0;             // of one call, the median over the blocks of the later half
  double running_share = 0;       // time inside blocks, of the whole time: 0 to 1
  std::vector<int64_t> block_ns;  // judge's clock, without a reference's copying into slots
  // As in PairSamples.
  std::vector<int> sm_mhz = {};
  std::vector<std::string> clock_limits = {};
};

// Of `assay judge --sustained`: the time of calls when the machine has no time to cool down.
struct SustainedRecord {
  std::string baseline;
  double seconds = 0;  // each side
  SustainedSide reference, candidate;
};

// The candidate's time by library, from samples of one pair; on a GPU, from kernels of one block.
struct LibraryTime {
  int64_t samples = 0;                   // of running threads; on a GPU: kernels that ran
  double foreign_share = 0;              // in foreign libraries
  std::map<std::string, double> shares;  // library -> share
};

// A kernel of a candidate for a GPU, from its machine code and its launch lines. Nothing here is
// measured.
struct KernelRecord {
  std::string name;          // "softmax<256>"
  int registers = 0;         // per thread
  int64_t stack_bytes = 0;   // local memory per thread: spilled registers and arrays
  int64_t shared_bytes = 0;  // per block, with the launch's request if that is known
  // If the launch is known, as in the device form; else 0 and empty.
  int launches = 0;     // per call, all like this
  int64_t threads = 0;  // per block
  int64_t blocks = 0;
  double occupancy = 0;      // of the warps that a multiprocessor can hold, 0 to 1
  std::string limiter = {};  // of the occupancy: "registers", "shared memory", "threads", "blocks"
  double waves = 0;          // blocks, over the number that the GPU holds at once
  // Static counts by kind; empty without nvdisasm.
  std::map<std::string, int64_t> instructions = {};
  int widest_load_bytes = 0;  // of global memory, per thread; 0: none, or not known
};

// An operator of the reference's forward that could be left out, or computed carelessly, without a
// draw of gate 1 that shows it, or with unusual ones alone, which a kernel may tell by a glance.
struct UnseenOperator {
  std::string name;       // PyTorch's: "add", "addmm"
  int line = 0;           // of the problem's file; 0: not known
  std::string mutant;     // what passes, in words
  double time_share = 0;  // of the forward's time, that the mutant saves
  std::string only_on;    // the kind of unusual draw that shows it; empty: none does
};

// What gate 1's values show of the reference, measured with mutants of its operators
// (correctness/coverage.h).
struct OperatorCoverage {
  int operators = 0;  // that have a mutant which changes an output
  int seen = 0;       // of these: all such mutants fail a draw that no glance tells
  int not_tried = 0;  // of these: the time ended before
  std::vector<UnseenOperator> unseen;
};

struct Foul {
  std::string rule;  // "ran-while-asleep", "late-write", "process-creation"...
  std::string seen;  // the observation, in one line
};

struct Cost {
  double build_s = 0;
  double start_s = 0;     // hosts starting
  double fill_s = 0;      // filling, poisoning, flushing and checking slots
  double timed_s = 0;     // inside blocks
  double overhead_s = 0;  // the rest
  double total_s = 0;
  bool build_cached = false;
};

struct Machine {
  std::string cpu;
  int cores = 0;
  int threads = 0;  // given to each side
  std::string gpu;  // "NVIDIA H200 (sm_90a, driver for CUDA 13.0)"; empty: judged on the CPU
  std::string kernel;
  std::string isolation;  // "bubblewrap, own uid, seccomp, landlock, cgroup v1" as in force
  bool weak = false;      // the sandbox's self-test broke out
};

// The line in a verdict's log that the candidate's own output follows.
inline constexpr std::string_view kPrintedHeading = "--- printed by the candidate ---\n";

struct Verdict {
  std::string id;
  std::string created;  // ISO 8601, UTC
  Outcome outcome = Outcome::kUnsettled;
  std::string message;  // the reason of the outcome, in one sentence, for people alone
  Cause cause = Cause::kNone;
  int line = 0;  // build_failed: the line of the candidate's file that is wrong; 0: not known
  ProblemRecord problem;
  CandidateRecord candidate;
  std::optional<Correctness> correctness;  // absent if gate 1 never ran
  std::optional<Speed> speed;              // absent if gate 2 never ran
  std::optional<Work> work;                // absent if the problem was never described
  std::optional<Roofline> roofline;        // absent without speed, or without measured ceilings
  std::optional<LibraryTime> libraries;    // absent if gate 2 never ran
  std::vector<KernelRecord> kernels;       // of a candidate for a GPU, if its code can be read
  std::string bottleneck;                  // the likely limit of these kernels; may be empty
  std::optional<Foul> foul;
  Cost cost;
  Machine machine;
  std::map<std::string, std::string> toolchain;  // "compiler", "pytorch", "assay"
  uint64_t seed = 0;
  std::vector<PairSamples> samples;
  // Output of the compiler, then kPrintedHeading and the last output of the candidate; both capped.
  std::string log;
  // Tools' reports on a candidate for a GPU, on request.
  std::optional<ProfileRecord> profile = {};
  std::optional<SanitizerRecord> sanitizer = {};
  std::optional<SustainedRecord> sustained = {};  // on request, if gate 2 decided
  std::optional<OperatorCoverage> coverage = {};          // nullopt: not measured
  std::optional<ProbeRecord> probe = {};          // on request, of a native candidate on the CPU
};

}  // namespace assay
