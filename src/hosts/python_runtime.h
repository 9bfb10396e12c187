// The Python that has PyTorch, and how a python host is started with it in the sandbox.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "hosts/host.h"

namespace assay {

struct PythonRuntime {
  std::string executable;     // absolute
  std::string version;        // "3.11.2"
  std::string torch_version;  // "1.13.0a0"
  std::string bytecode;       // a folder of bytecode (hosts/bytecode.h); empty: its own
  std::vector<std::string>
      folders;  // that the interpreter and its packages live in, outside of the system's
};

// `requested`: --python, may be empty; then $ASSAY_PYTHON, then the first of python3 and
// /usr/bin/python3 that has torch. Errors (kEnvironment) say which interpreters were tried and how
// to install PyTorch.
Result<PythonRuntime> FindPython(const std::string& requested);

// kOpponent: the problem's own Model on the candidate's way, to be timed against it.
enum class PythonRole { kReference, kCandidate, kOpponent, kBuild };

struct PythonHostFiles {
  std::string problem_source;    // reference and opponent only
  std::string settings;          // JSON text
  std::string candidate_source;  // candidate and build only
  std::string init_arguments;    // pickle of get_init_inputs(), from the trusted host
  std::string extensions;        // tar of what the build made
};

// Processes and threads that a host may have: a compiler, and several pools of `threads` threads
// (OpenMP's, the BLAS library's, PyTorch's own).
constexpr uint32_t ProcessesFor(int threads) { return 64 + 4 * static_cast<uint32_t>(threads); }

// What the oracle and reference hosts may work, on all cores together: they serve many candidates.
constexpr double kTrustedCpuSeconds = 100.0 * 24 * 3600;

// What a host takes with PyTorch imported and small tensors, roughly.
constexpr uint64_t kPythonHostBytes = uint64_t{300} << 20;

// The sandbox request for a python host; limits, cpus and descriptors are the caller's to set.
Result<SandboxRequest> PythonSandbox(const PythonRuntime& python, PythonRole role, int threads,
                                     const PythonHostFiles& files);

// The OpenBLAS kernels for this processor's instructions, as OPENBLAS_CORETYPE names them; empty to
// leave the choice to it. It goes by model numbers, and on a processor that is newer than itself it
// falls back to SSE kernels, a fifth as fast: a baseline that anything beats.
std::string OpenBlasKernels();

// Inside a sandbox the files are called problem.py and candidate.py: says their own names in a
// message about one of their lines. An empty path leaves its file's name alone.
void NameFiles(const std::string& problem_path, const std::string& candidate_path,
               std::string* message);

// Environment of every host: a clean one, with equal thread counts for each library that reads one.
std::map<std::string, std::string> HostEnvironment(int threads);

}  // namespace assay
