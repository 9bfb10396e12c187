// Looks at candidates without judging them: the time of their calls side by side, and their errors
// output by output beside the reference's own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "builders/build_candidate.h"
#include "values/judge_device.h"
#include "values/live_slots.h"
#include "values/oracle.h"

namespace assay {

struct StudyRequest {
  ProblemRequest problem;
  std::string python;
  int threads = 0;  // 0: as many as a judgement gives
  CandidateLimits limits;
  StopToken stop;
};

// An output's error against float64: the norm of the difference, over the norm of the truth.
struct OutputError {
  std::string name;
  double reference = 0, candidate = 0;
};

// A problem held open, with hosts of its own. Not safe for several threads.
class CandidateStudy {
 public:
  // Errors: kUsage for faults of the problem's file, kEnvironment for the machine's.
  static Result<CandidateStudy> Open(StudyRequest request);

  const ProblemDescription& description() const { return oracle_->description(); }

  // Returns the times of one call of each candidate [ns], one for each round, in which each runs a
  // block; all hosts live at once. Python candidates must load the same extension, which is built
  // once. Errors (kUsage) name a candidate that does not build or run.
  Result<std::vector<std::vector<double>>> TimeCalls(const std::vector<CandidateSource>& candidates,
                                                     int rounds,
                                                     const std::function<void(double)>& progress);

  // Returns the errors on an ordinary draw, in the order of the outputs; integer outputs are left
  // out. Errors (kUsage): as above, or a problem that has no float64.
  Result<std::vector<OutputError>> Errors(const CandidateSource& candidate, uint64_t seed);

 private:
  struct Runner;
  const Gpu* gpu() const { return device_ ? &device_->gpu() : nullptr; }
  Result<std::vector<BuiltCandidate>> BuildAll(
      const std::vector<CandidateSource>& candidates) const;
  // Starts a candidate's host, in blocks and stopped.
  Result<void> Start(BuiltCandidate built, Runner* runner) const;
  Result<BuiltCandidate> Build(const CandidateSource& candidate) const;

  StudyRequest request_;
  PythonRuntime python_;
  std::string settings_;
  std::unique_ptr<JudgeDevice> device_;  // null on the CPU
  std::unique_ptr<Oracle> oracle_;
  std::unique_ptr<LiveSlots> live_;
};

// Returns the median of `longer` less `shorter`, round by round [ns]: rounds that other processes
// disturb are so for both.
double MedianDifference(const std::vector<double>& longer, const std::vector<double>& shorter);

// Returns ||y - truth|| / ||truth||; infinite if `y` has a NaN or an infinity that the truth has
// not. `y`: elements of a floating-point dtype.
double RelativeError(DType dtype, const std::byte* y, const double* truth, uint64_t count);

}  // namespace assay
