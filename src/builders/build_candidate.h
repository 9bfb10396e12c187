// Builds a candidate's artifact from its source, in the builder's sandbox.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "builders/constants.h"
#include "gpu/gpu.h"
#include "hosts/python_runtime.h"
#include "toolchain/build.h"
#include "toolchain/sass.h"
#include "wire/types.h"

namespace assay {

struct CandidateLimits {
  uint64_t memory_bytes = uint64_t{4} << 30;
  double build_timeout_s = 0;  // 0: by BuildTimeoutS
  double call_timeout_s = 10;
};

// The reason why a candidate did not build, as far as others act on it.
enum class BuildFault {
  kOther,      // its source, or its compiler
  kTimedOut,   // it took too long
  kExtension,  // PyTorch's loader could not compile an extension of a candidate in Python
  kNotHere,    // it needs what this machine lacks: it gets no verdict
};

// A built candidate, or the reason for its failure.
struct BuiltCandidate {
  CandidateSource source;
  std::string artifact;  // shared library, tar of extensions, or device image
  std::string launches;  // wire::Launches, of a device candidate
  std::string toolkit;   // CUDA's folder, if its hosts read it
  std::string flags;
  std::string compiler;
  std::string headers;  // PyTorch's, of extensions: "lean", "full"; empty: nothing was built so
  std::map<std::string, InstructionMix> instructions;  // by kernel; GPU with nvdisasm only
  double build_s = 0;
  bool cached = false;
  bool without_device = false;         // it was imported and constructed where no device was seen
  std::optional<std::string> failure;  // set: it did not build; the message
  BuildFault fault = BuildFault::kOther;
  int line = 0;  // of its source, which the failure is about; 0: none is known
  std::string log;
  // By other size: the candidate for it where its build is another, as in the device form, whose
  // launches are planned for one size; null: this one.
  std::vector<std::shared_ptr<const BuiltCandidate>> at_other_sizes;
  bool known = false;  // the same was judged before, and need not be judged again
};

// Returns the SHA-256 of all that runs, so that equal ones are one candidate: the shared library,
// or the device image with its launches. Empty for Python, and where nothing was built.
std::string ArtifactHash(const BuiltCandidate& built);

// Returns the text of assay/kernel.h, as candidates include it.
Result<std::string> KernelHeader();

// The device that a candidate is built for, and the sizes of its calls.
struct DeviceTarget {
  const Gpu& gpu;
  const wire::Plan& plan;
  bool libraries_allowed = true;
  struct Size {
    const wire::Plan& plan;
    const std::string& init_arguments;
    const std::string& settings;
  };
  std::optional<Size> other_size;
  bool forks = false;        // builders in Python that do without the device come from a nursery
  Constants constants = {};  // of the problem, in the device form
};

// Compiles a candidate in a sandbox, or imports it once if it is in Python. Not for the device
// form. `target`: null on the CPU. `constants`: of the problem, for native candidates. A source
// that does not build is a result with `failure`. Errors (kEnvironment): no compiler, no sandbox;
// kInterrupted.
Result<BuiltCandidate> BuildCandidate(const CandidateSource& source, const CandidateLimits& limits,
                                      const PythonRuntime& python,
                                      const std::string& init_arguments,
                                      const std::string& settings, StopToken stop,
                                      const DeviceTarget* target = nullptr,
                                      const Constants& constants = {});

// Returns the time that a build may take [s], which is also the time that a Python host may take to
// load the candidate: as asked for, or a minute, or five where PyTorch compiles an extension or a
// first call compiles for a device.
double BuildTimeoutS(const CandidateSource& source, const CandidateLimits& limits, bool on_device);

// Returns true if it builds from its source alone, without a device, the problem or its constants.
bool BuildsAlone(const CandidateSource& source);

}  // namespace assay
