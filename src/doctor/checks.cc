#include "doctor/checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "base/files.h"
#include "builders/build_candidate.h"
#include "doctor/noise.h"
#include "hosts/python_runtime.h"
#include "machine/machine.h"
#include "sandbox/sandbox.h"
#include "studies/inspect.h"
#include "toolchain/build.h"

namespace assay {
namespace {

using State = DoctorFinding::State;

DoctorFinding CheckHelpers() {
  const auto folder = SupportFolder();
  if (folder) return {State::kGood, "helpers", *folder, ""};
  return {State::kMissing, "helpers", folder.error().message, "scripts/build release"};
}

// One C++ compiler is needed; a second is welcome.
std::vector<DoctorFinding> CheckCompilers() {
  const struct {
    const char* name;
    const char* mend;
  } compilers[] = {{"g++", "apt-get install g++"}, {"clang++", "apt-get install clang libomp-dev"}};
  std::vector<DoctorFinding> findings;
  bool any = false;
  for (const auto& [name, mend] : compilers) {
    const auto compiler = FindCompiler(name, "cpp");
    any |= compiler.has_value();
    if (compiler)
      findings.push_back({State::kGood, name, compiler->version, ""});
    else
      findings.push_back({State::kLimited, name, "not found", mend});
  }
  if (!any) {
    findings.front().state = State::kMissing;
    findings.front().found = "no C++ compiler: candidates in C++ and C cannot be built";
  }
  return findings;
}

DoctorFinding CheckSandbox() {
  const SandboxSupport& support = ProbeSandbox();
  const bool holds = support.self_test.breaches.empty();
  if (support.available)
    return {holds ? State::kGood : State::kLimited, "sandbox", support.isolation, ""};
  return {State::kMissing, "sandbox", support.missing,
          support.lacks_bubblewrap ? "apt-get install bubblewrap" : ""};
}

DoctorFinding CheckSelfTest() {
  const SelfTestReport& self_test = ProbeSandbox().self_test;
  if (!self_test.breaches.empty())
    return {State::kMissing, "self-test",
            "broke out of the sandbox: " + DescribeBreaches(self_test),
            "your distribution's own bubblewrap and kernel, or a virtual machine"};
  std::string found = fmt::format("{} attempts to break out, none did", self_test.tried);
  if (!self_test.skipped.empty())
    found += fmt::format("; this kernel's Landlock has nothing against {}",
                         fmt::join(self_test.skipped, ", "));
  return {State::kGood, "self-test", found, ""};
}

DoctorFinding CheckGroups() {
  const SandboxSupport& support = ProbeSandbox();
  if (!support.memory_cgroup.empty()) return {State::kGood, "memory limit", "by control group", ""};
  return {State::kLimited, "memory limit",
          "no memory control group can be made: candidates are limited by address space alone",
          "systemd-run --user --scope -p Delegate=yes assay ..."};
}

DoctorFinding CheckPython(const std::string& requested) {
  const auto python = FindPython(requested);
  if (!python)
    return {State::kMissing, "PyTorch", python.error().message,
            "apt-get install python3-torch libopenblas0-pthread"};
  return {
      State::kGood, "PyTorch",
      fmt::format("{} (Python {}, {})", python->torch_version, python->version, python->executable),
      ""};
}

DoctorFinding CheckMemory() {
  constexpr uint64_t kEnough = uint64_t{2} << 30;
  const uint64_t bytes = AvailableMemoryBytes();
  const std::string found = fmt::format("{:.1f} GB free", static_cast<double>(bytes) / 1e9);
  if (bytes >= kEnough) return {State::kGood, "memory", found, ""};
  return {State::kLimited, "memory", found + ": problems of small size may not fit",
          "close other programs, or judge with --size tiny"};
}

DoctorFinding CheckStateFolder() {
  const auto path = StateFolder() / "doctor.probe";
  const auto written = WriteFileAtomically(path, "probe\n");
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  if (written) return {State::kGood, "state folder", StateFolder().string(), ""};
  return {State::kLimited, "state folder",
          "verdicts and measurements cannot be kept: " + written.error().message,
          "set XDG_STATE_HOME to a folder that can be written"};
}

// The whole way of a native candidate through the builder, headers and all.
Result<DoctorFinding> TryBuild(StopToken stop) {
  const auto built = BuildCandidate(ScaleCandidate(), {}, {}, "", "", stop);
  if (!built && built.error().kind == ErrorKind::kInterrupted)
    return std::unexpected(built.error());
  if (!built) return DoctorFinding{State::kMissing, "trial build", built.error().message, ""};
  if (!built->failure)
    return DoctorFinding{State::kGood, "trial build",
                         built->cached
                             ? "a kernel compiled (cached)"
                             : fmt::format("a kernel compiled in {:.1f} s", built->build_s),
                         ""};
  return DoctorFinding{State::kMissing, "trial build", *built->failure,
                       "apt-get install g++ libc6-dev"};
}

}  // namespace

Result<std::vector<DoctorFinding>> CheckMachine(const std::string& python, StopToken stop) {
  std::vector<DoctorFinding> findings{CheckHelpers()};
  for (DoctorFinding& finding : CheckCompilers()) findings.push_back(std::move(finding));
  const bool compiles = findings[1].state != State::kMissing;
  findings.push_back(CheckSandbox());
  if (ProbeSandbox().available) {
    findings.push_back(CheckSelfTest());
    findings.push_back(CheckGroups());
    if (compiles && RequireSandbox()) {
      ASSAY_ASSIGN_OR_RETURN(DoctorFinding trial, TryBuild(stop));
      findings.push_back(std::move(trial));
    }
  }
  findings.push_back(CheckPython(python));
  findings.push_back(CheckMemory());
  findings.push_back(CheckStateFolder());
  return findings;
}

Result<MatrixProduct> CheckMatrixProduct(const std::string& python, double peak_operations_s,
                                         StopToken stop) {
  constexpr double kSize = 768, kShareMin = 0.25;
  constexpr const char* kName = "matrix product";
  InspectRequest request;
  request.problem.name = "product";
  request.problem.path = "product.py";
  request.problem.source = R"python(import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    return [torch.randn(768, 768), torch.randn(768, 768)]
)python";
  request.python = python;
  request.threads = 1;
  request.profile = true;
  request.stop = stop;
  const auto inspection = InspectProblem(request);
  if (!inspection && inspection.error().kind == ErrorKind::kInterrupted)
    return std::unexpected(inspection.error());
  if (!inspection || !inspection->profile)
    return MatrixProduct{
        0, {State::kLimited, kName, inspection ? "no time" : inspection.error().message, ""}};
  const double rate = 2 * kSize * kSize * kSize / (inspection->profile->wall_ns / 1e9);
  const double share = rate / peak_operations_s;
  const std::string found =
      fmt::format("PyTorch's reaches {:.1f} GFLOP/s on one core, {:.0f}% of what it can do",
                  rate / 1e9, 100 * share);
  if (share >= kShareMin) return MatrixProduct{share, {State::kGood, kName, found, ""}};
  return MatrixProduct{share,
                       {State::kLimited, kName, found + ": speedups over it mean little",
                        "apt-get install libopenblas0-pthread"}};
}

}  // namespace assay
