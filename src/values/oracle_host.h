// The trusted host of a reference before it holds a problem: its start, its settings, its estimate
// of what the problem takes, and its trouble in words.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "hosts/host.h"
#include "hosts/python_runtime.h"
#include "model/problem.h"
#include "values/judge_device.h"
#include "values/memory_plan.h"
#include "values/work_account.h"

namespace assay {

struct OracleOptions {
  ProblemRequest problem;
  PythonRuntime python;
  int threads = 1;
  uint64_t weights_seed = 0;
  uint64_t memory_bytes = 0;      // limit of all slots together
  uint32_t slots_most = 0;        // wanted at most; 0: as many as possible
  double timeout_s = 120;         // for one evaluation
  JudgeDevice* device = nullptr;  // runs the reference; null: the CPU does
  StopToken stop;
  bool forks = false;  // its host comes from a nursery
};

// Starts and greets a trusted host for the reference, with the problem's files in place.
Result<std::unique_ptr<Host>> StartOracleHost(const OracleOptions& options);

// Sends a request that is answered with text in a memory file. Returns the reply and the text,
// whose size is argument number `size_arg` of the reply.
struct TextReply {
  wire::Frame frame;
  std::string text;
};
HostResult<TextReply> RequestText(Host& host, wire::FrameKind kind, uint64_t argument,
                                  size_t size_arg, double timeout_s, uint64_t second = 0);

// The host's estimate of a problem.
struct ProblemEstimate {
  WorkAccount account;
  CallBytes call;  // zero where it could not be estimated
};
// Returns the estimate. Fails, before anything is allocated, for a problem that needs more than
// `options.memory_bytes`; 0: no limit.
Result<ProblemEstimate> EstimateProblem(Host& host, const OracleOptions& options);
// Returns the error for a problem that may take `options.memory_bytes`, and needs more.
Error TooLarge(Host& host, const OracleOptions& options, const CallBytes& call);
// Returns the construction record by which a candidate in Python is constructed, and no more: the
// problem is not called. Empty: there is none, or the problem fails.
std::string ConstructionRecord(Host& host, const OracleOptions& options);
// Bytes that a construction record may take.
inline constexpr uint64_t kInitArgumentsMax = 64 << 20;
// Returns the `--set` options with which a problem would take about this share of its bytes, or
// fewer; empty: none were found.
std::string SetForShare(Host& host, double share, double timeout_s);

// Returns a reference host's trouble as the request's error.
Error OracleError(const HostTrouble& trouble);

// Returns how weights are treated, as far as the defences that stand allow it.
WeightsKind WeightsTreatment(const ProblemRequest& problem);

// Returns settings.json of a reference or candidate host.
std::string HostSettings(const ProblemRequest& problem, int threads, uint64_t weights_seed,
                         std::string_view baseline);

}  // namespace assay
