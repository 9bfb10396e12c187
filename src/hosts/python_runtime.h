// Finds the Python that has PyTorch, and prepares the sandbox of python hosts.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "hosts/host.h"

namespace assay {

struct PythonRuntime {
  std::string executable;            // absolute
  std::string version;               // "3.11.2"
  std::string torch_version;         // "1.13.0a0"
  std::string bytecode;              // a folder of bytecode (hosts/bytecode.h); empty: its own
  std::vector<std::string> folders;  // of the interpreter and its packages, outside of the system's
};

// Returns `requested` (--python), or if that is empty $ASSAY_PYTHON, or the first of python3 and
// /usr/bin/python3 that has torch. An interpreter that was found is not asked again by this
// process. Errors (kEnvironment) name the interpreters that were tried and the way to install
// PyTorch.
Result<PythonRuntime> FindPython(const std::string& requested);

// kOpponent: the problem's own Model, loaded as a candidate is loaded, to be timed against it.
// kMine: compiles the problem's Model, and leaves a candidate of the code.
enum class PythonRole { kReference, kCandidate, kOpponent, kBuild, kMine };

struct PythonHostFiles {
  std::string problem_source;    // reference, opponent and mine only
  std::string settings;          // JSON text
  std::string candidate_source;  // candidate and build only; of a folder: packed
  std::string init_arguments;    // pickle of get_init_inputs(), from the trusted host
  std::string extensions;        // tar of the build's products
};

// Returns the limit of a host's processes and threads: a compiler, and several pools of `threads`
// threads (OpenMP's, the BLAS library's, PyTorch's own).
constexpr uint32_t ProcessesFor(int threads) { return 64 + 4 * static_cast<uint32_t>(threads); }

// CPU time limit of the oracle and reference hosts, over all cores: they serve many candidates.
constexpr double kTrustedCpuSeconds = 100.0 * 24 * 3600;

// Approximate memory of a host with PyTorch imported and small tensors.
constexpr uint64_t kPythonHostBytes = uint64_t{300} << 20;

// Returns the sandbox request for a python host; the caller sets limits, cpus and descriptors.
Result<SandboxRequest> PythonSandbox(const PythonRuntime& python, PythonRole role, int threads,
                                     const PythonHostFiles& files);

// Returns the nursery of the hosts of a role and pair. A verdict's pairs have nurseries of their
// own, so that no two share a layout of memory. Those of later pairs must be started ahead; nullopt
// from the pair on that costs more memory than it saves time: its host is executed.
std::optional<Nursery> NurseryFor(const std::string& role, int pair_index,
                                  const PythonRuntime& python);

// Returns the OpenBLAS kernels for this processor's instructions, as OPENBLAS_CORETYPE names them;
// empty: OpenBLAS chooses. It chooses by model number, and on a processor newer than itself takes
// SSE kernels, a fifth as fast: a baseline that anything beats.
std::string OpenBlasKernels();

// Puts the files' own names into a message: inside a sandbox they are called problem.py and
// candidate.py. An empty path leaves its file's name alone.
void NameFiles(const std::string& problem_path, const std::string& candidate_path,
               std::string* message);

// Returns N of a host's "candidate.py line N: ..." (assay_host/failure.py); 0: it names no line.
// Ask before NameFiles.
int LineOfCandidate(std::string_view message);

// Returns the environment of every host: a clean one, with equal thread counts for each library
// that reads one.
std::map<std::string, std::string> HostEnvironment(int threads);

}  // namespace assay
