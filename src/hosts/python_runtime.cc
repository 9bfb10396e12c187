#include "hosts/python_runtime.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>

#include "base/files.h"
#include "hosts/bytecode.h"
#include "toolchain/packed_folder.h"

namespace assay {
namespace fs = std::filesystem;
namespace {

constexpr const char* kBytecodeInside = "/assay/bytecode";

// Prints, a line each: executable, version, torch's version or "-", where its bytecode should lie
// and does not or "-", then the folders that are needed.
constexpr const char* kProbe = R"python(
import sys
sys.path[:] = [path for path in sys.path if path]  # not the folder where the user happens to be
import importlib.util, os, re
spec = importlib.util.find_spec('torch')
version = bytecode = '-'
if spec and spec.origin:
    try:
        with open(os.path.join(os.path.dirname(spec.origin), 'version.py')) as file:
            version = re.search(r"__version__ = '([^']+)'", file.read()).group(1)
    except (OSError, AttributeError):
        version = 'unknown'
    bytecode = importlib.util.cache_from_source(spec.origin)
    if os.path.exists(bytecode):
        bytecode = '-'
print(os.path.abspath(sys.executable)); print(sys.version.split()[0])
print(version); print(bytecode)
for path in dict.fromkeys([sys.prefix, sys.base_prefix, sys.exec_prefix] + sys.path):
    if path and os.path.isdir(path): print(os.path.realpath(path))
)python";

// Runs the probe, without a shell; its stdout. nullopt when it fails or does not exist.
std::optional<std::string> Capture(const std::string& executable) {
  int pipe_fds[2];
  if (::pipe2(pipe_fds, O_CLOEXEC) != 0) return std::nullopt;
  UniqueFd read_end(pipe_fds[0]), write_end(pipe_fds[1]);
  const char* arguments[] = {executable.c_str(), "-c", kProbe, nullptr};
  const pid_t pid = ::fork();
  if (pid < 0) return std::nullopt;
  if (pid == 0) {
    const int null = ::open("/dev/null", O_RDWR);
    ::dup2(null, 0);
    ::dup2(write_end.get(), 1);
    ::dup2(null, 2);
    ::execvp(arguments[0], const_cast<char* const*>(arguments));
    ::_exit(127);
  }
  write_end.Close();
  std::string text;
  char buffer[4096];
  // A signal ends neither: half a text would be taken for an interpreter.
  for (ssize_t count; (count = ::read(read_end.get(), buffer, sizeof buffer)) != 0;) {
    if (count < 0 && errno != EINTR) break;
    if (count > 0) text.append(buffer, static_cast<size_t>(count));
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  return text;
}

bool IsSystemFolder(const std::string& folder) {
  return folder == "/usr" || folder.starts_with("/usr/") || folder == "/lib" ||
         folder.starts_with("/lib/");
}

std::optional<PythonRuntime> Probe(const std::string& executable) {
  const auto text = Capture(executable);
  if (!text) return std::nullopt;
  std::istringstream lines(*text);
  PythonRuntime python;
  std::getline(lines, python.executable);
  std::getline(lines, python.version);
  std::getline(lines, python.torch_version);
  std::string missing_bytecode;
  std::getline(lines, missing_bytecode);
  if (!python.executable.starts_with('/') || python.torch_version.empty()) return std::nullopt;
  for (std::string folder; std::getline(lines, folder);)
    if (!IsSystemFolder(folder) && fs::path(folder) != fs::current_path())
      python.folders.push_back(folder);
  if (missing_bytecode.starts_with('/')) python.bytecode = BytecodeOf(python, missing_bytecode);
  return python;
}

}  // namespace

namespace {

Result<PythonRuntime> LookForPython(const std::string& requested) {
  std::vector<std::string> choices;
  if (!requested.empty()) {
    choices = {requested};
  } else if (const char* variable = ::getenv("ASSAY_PYTHON"); variable != nullptr && *variable) {
    choices = {variable};
  } else {
    choices = {"python3", "/usr/bin/python3"};
  }
  std::string tried;
  for (const std::string& choice : choices) {
    auto python = Probe(choice);
    if (python && python->torch_version != "-") return *python;
    tried += fmt::format("{}{} ({})", tried.empty() ? "" : ", ", choice,
                         python ? "has no torch" : "does not run");
  }
  return EnvironmentError(
      fmt::format("no Python with PyTorch was found: tried {}. Install it (Debian: apt-get install "
                  "python3-torch) "
                  "or name another interpreter with --python or ASSAY_PYTHON",
                  tried));
}

// All that LookForPython() reads besides the interpreters themselves.
std::string CircumstancesOf(const std::string& requested) {
  std::error_code code;
  std::string text = requested + "\n" + fs::current_path(code).string();
  for (const char* name : {"ASSAY_PYTHON", "PATH", "PYTHONPATH", "PYTHONHOME", "XDG_CACHE_HOME"})
    if (const char* value = ::getenv(name)) text += fmt::format("\n{}={}", name, value);
  return text;
}

}  // namespace

Result<PythonRuntime> FindPython(const std::string& requested) {
  static std::mutex mutex;
  static std::map<std::string, PythonRuntime> found;
  const std::lock_guard lock(mutex);
  const std::string circumstances = CircumstancesOf(requested);
  if (const auto known = found.find(circumstances); known != found.end()) return known->second;
  ASSAY_ASSIGN_OR_RETURN(PythonRuntime python, LookForPython(requested));
  return found.emplace(circumstances, std::move(python)).first->second;
}

void NameFiles(const std::string& problem_path, const std::string& candidate_path,
               std::string* message) {
  const struct {
    std::string_view inside;
    std::string name;
  } files[] = {{"problem.py", fs::path(problem_path).filename().string()},
               {"candidate.py", fs::path(candidate_path).filename().string()}};
  std::string named;
  for (size_t at = 0; at < message->size();) {
    const std::string_view rest = std::string_view(*message).substr(at);
    const bool starts = at == 0 || (*message)[at - 1] == ' ' || (*message)[at - 1] == '\n';
    const auto file = std::find_if(std::begin(files), std::end(files), [&](const auto& each) {
      const std::string_view after =
          rest.starts_with(each.inside) ? rest.substr(each.inside.size()) : std::string_view();
      return !each.name.empty() && (after.starts_with(" line ") || after.starts_with(" defines ") ||
                                    after.starts_with(": "));
    });
    if (starts && file != std::end(files)) {
      named += file->name;
      at += file->inside.size();
    } else {
      named += (*message)[at++];
    }
  }
  *message = std::move(named);
}

int LineOfCandidate(std::string_view message) {
  constexpr std::string_view kFile = "candidate.py line ";
  const size_t at = message.find(kFile);
  int line = 0;
  if (at == std::string_view::npos) return 0;
  const std::string_view digits = message.substr(at + kFile.size());
  std::from_chars(digits.data(), digits.data() + digits.size(), line);
  return line;
}

std::optional<Nursery> NurseryFor(const std::string& role, int pair_index,
                                  const PythonRuntime& python) {
  // The pairs up to the first look of the test, and to the second (rules/gate2.h).
  constexpr int kAlways = 9, kNurseries = 14;
  if (pair_index >= kNurseries) return std::nullopt;
  return Nursery{fmt::format("{} {}", role, pair_index), python.executable, python.bytecode,
                 pair_index >= kAlways};
}

std::string OpenBlasKernels() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return __builtin_cpu_is("amd") ? "Zen" : "Haswell";
#endif
  return {};
}

std::map<std::string, std::string> HostEnvironment(int threads) {
  const std::string count = std::to_string(threads);
  std::map<std::string, std::string> environment{
      {"PATH", "/usr/local/bin:/usr/bin:/bin"},
      {"HOME", "/tmp"},
      {"TMPDIR", "/tmp"},
      {"LANG", "C.UTF-8"},
      {"OMP_NUM_THREADS", count},
      {"OPENBLAS_NUM_THREADS", count},
      {"MKL_NUM_THREADS", count},
      {"NUMEXPR_NUM_THREADS", count},
      // Freed results are reused at once, as in a program that has run for a while: glibc
      // would hand large ones back to the kernel for the first calls, or for ever, and each
      // call would pay thousands of page faults.
      {"MALLOC_MMAP_MAX_", "0"},
      {"MALLOC_TRIM_THRESHOLD_", "1099511627776"},
      {"PYTHONHASHSEED", "0"},
      {"PYTHONDONTWRITEBYTECODE", "1"},
      {"PYTHONUNBUFFERED", "1"},
      {"TORCH_EXTENSIONS_DIR", "/tmp/extensions"},
      // A pool of helpers that compile would use cores that are being timed, and a host that is
      // locked down cannot start one.
      {"TORCHINDUCTOR_COMPILE_THREADS", "1"}};
  if (const std::string kernels = OpenBlasKernels(); !kernels.empty())
    environment["OPENBLAS_CORETYPE"] = kernels;
  return environment;
}

namespace {

// A folder's files, and the name of its entry for assay_host/candidate.py.
void AddCandidate(const std::string& source, SandboxRequest* request) {
  if (source.empty()) return;
  CandidateSource candidate;
  candidate.content = source;
  candidate.form = CandidateForm::kPython;
  for (PlacedFile& file : PlacedFiles(candidate))
    request->files.push_back({std::move(file.path), std::move(file.content), false});
  if (const auto folder = UnpackFolder(source))
    request->files.push_back({"/candidate/entry", std::string(folder->entry), false});
}

}  // namespace

Result<SandboxRequest> PythonSandbox(const PythonRuntime& python, PythonRole role, int threads,
                                     const PythonHostFiles& files) {
  ASSAY_ASSIGN_OR_RETURN(const std::string support, SupportFolder());
  SandboxRequest request;
  const char* role_name = role == PythonRole::kReference   ? "reference"
                          : role == PythonRole::kCandidate ? "candidate"
                          : role == PythonRole::kOpponent  ? "opponent"
                          : role == PythonRole::kMine      ? "mine"
                                                           : "build";
  request.arguments = {python.executable, "-B", "-s", "/assay/python/assay_host/__main__.py",
                       role_name};
  request.environment = HostEnvironment(threads);
  // Its memory for tensors (host/python/results.cc).
  if (role != PythonRole::kBuild && role != PythonRole::kMine)
    request.environment["LD_PRELOAD"] = "/assay/libassay_host.so";
  request.limits.processes = ProcessesFor(threads);
  request.may_start_processes = true;
  for (const std::string& folder : python.folders) request.binds.push_back({folder, folder});
  if (!python.bytecode.empty()) {
    request.binds.push_back({python.bytecode, kBytecodeInside});
    request.environment["PYTHONPYCACHEPREFIX"] = kBytecodeInside;
  }
  std::error_code code;
  const fs::path sources = fs::path(support) / "python" / "assay_host";
  for (const auto& entry : fs::directory_iterator(sources, code)) {
    if (entry.path().extension() != ".py") continue;
    ASSAY_ASSIGN_OR_RETURN(std::string content, ReadFile(entry.path(), 1 << 20));
    request.files.push_back({"/assay/python/assay_host/" + entry.path().filename().string(),
                             std::move(content), false});
  }
  if (code || request.files.empty())
    return EnvironmentError(fmt::format(
        "Assay's python hosts are missing from {}; rebuild or reinstall it", sources.string()));
  ASSAY_ASSIGN_OR_RETURN(std::string library,
                         ReadFile(fs::path(support) / "libassay_host.so", 64 << 20));
  request.files.push_back({"/assay/libassay_host.so", std::move(library), true});
  AddCandidate(files.candidate_source, &request);
  const auto add = [&](const char* target, const std::string& content) {
    if (!content.empty()) request.files.push_back({target, content, false});
  };
  add("/problem/problem.py", files.problem_source);
  add("/problem/settings.json", files.settings);
  add("/candidate/init.pickle", files.init_arguments);
  add("/candidate/extensions.tar", files.extensions);
  return request;
}

}  // namespace assay
