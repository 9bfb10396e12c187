// The terms of a session: the problem, the opponent, and the work that a verdict may take.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "builders/build_candidate.h"
#include "model/machine_profile.h"
#include "model/problem.h"
#include "toolchain/build.h"
#include "toolchain/gpu_tools.h"

namespace assay {

// The tool of Compute Sanitizer that checks candidates.
struct SanitizerChoice {
  GpuTool program;
  std::string tool;  // of kSanitizerTools (toolchain/compute_sanitizer.h)
};

// The opponent that a candidate must beat.
struct OpponentChoice {
  std::optional<CandidateSource> against;          // set: the opponent, instead of baselines
  std::vector<std::string> baselines = {"eager"};  // the first decides the outcome
  // The baseline that is hardest to beat decides, under the name "best". A baseline that fails is
  // left out, except the first.
  bool best_baseline = false;
};

// The speedups that matter to one batch; a session may have others for each.
struct Bar {
  double threshold = 1;  // to be exceeded (--p)
  // With Effort::futility: the candidate is given up once this is out of its reach, if it is more
  // than the threshold. Its outcome is `not_faster` than this.
  double bound = 0;
};

// The request for one batch.
struct SessionAsked {
  bool correctness_only = false;  // nothing is timed; outcome `correct`
  Bar bar = {};
  // Set: hashes of artifacts (ArtifactHash) that have a verdict. Candidates with one of them, or
  // with that of an earlier candidate of the batch, are told as `known`, and not judged.
  std::optional<std::set<std::string>> known = std::nullopt;
};

// The amount of measuring.
struct Effort {
  double speed_budget_s = 60;     // of the speed gate, for each candidate and baseline
  double sustained_s = 0;         // run of both sides without pauses afterwards; 0: none
  bool futility = false;          // gate 2 ends as not_faster once a win is out of reach
  bool replay = true;             // blocks may be replays of CUDA graphs
  bool correctness_only = false;  // no candidate is ever timed
};

// Tools that run each candidate once its verdict is made; programs on a GPU alone.
struct ToolChoice {
  std::optional<GpuTool> profiler;  // Nsight Compute
  std::optional<SanitizerChoice> sanitizer;
  bool probes = false;  // page faults, counters, scaling; on the processor alone
};

struct SessionTerms {
  ProblemRequest problem;
  bool ragged_asked = false;  // the user named the problem's ranges
  OpponentChoice opponent;
  Effort effort;
  ToolChoice tools;
  int threads = 0;         // each side; 0: DefaultThreads()
  std::string python;      // --python
  std::string precision;   // --precision; empty: the problem's
  std::string tolerance;   // --tolerance; empty: the problem's
  uint64_t seed = 0;       // of the weights and the first batch; 0: a fresh one
  MachineProfile machine;  // as measured here; empty parts were not
  CandidateLimits limits;
  bool forks_hosts =
      false;        // Python hosts come from nurseries: pays if candidates follow each other
  int sharers = 1;  // judges that share the device and the memory, this one included
};

}  // namespace assay
