#include "builders/native_code.h"

#include <unistd.h>

#include "base/clock.h"
#include "builders/build_steps.h"
#include "toolchain/packed_folder.h"

namespace assay {
namespace {

constexpr const char* kObjdump = "/usr/bin/objdump";
constexpr const char* kObject = "/candidate/kernel.so";
constexpr const char* kListing = "/tmp/listing";

int VectorBits() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return 512;
  return __builtin_cpu_supports("avx2") ? 256 : 128;
#else
  return 0;
#endif
}

Result<std::string> List(const std::string& artifact, StopToken stop) {
  constexpr double kTimeoutS = 20;
  SandboxRequest request;
  // The sandbox keeps 64 KiB of what is printed: the listing goes to a file.
  request.arguments = {"/bin/sh", "-c",
                       std::string("exec ") + kObjdump + " -d -l -C -M intel --no-show-raw-insn " +
                           kObject + " > " + kListing};
  request.environment = CompilerEnvironment();
  request.files.push_back({kObject, artifact, false});
  request.limits.memory_bytes = uint64_t{1} << 30;
  request.limits.address_space_bytes = uint64_t{2} << 30;
  ASSAY_ASSIGN_OR_RETURN(
      ToolRun run, RunToolInSandbox(request, kListing, Deadline::AfterSeconds(kTimeoutS), stop));
  if (!run.exit.exited || run.exit.status != 0) return std::string();
  return std::move(run.artifact);
}

}  // namespace

Result<NativeCode> ReadNativeCode(const CandidateSource& source, const CandidateLimits& limits,
                                  StopToken stop) {
  NativeCode none;
  if (!BuildsAlone(source) || VectorBits() == 0 || ::access(kObjdump, X_OK) != 0) return none;
  CandidateSource with_lines = source;
  with_lines.content = WithEntryText(
      source.content, std::string(EntryText(source.content)) +
                          (source.language == "c" ? "\n/*! flags -g */\n" : "\n//! flags -g\n"));
  ASSAY_ASSIGN_OR_RETURN(const BuiltCandidate built,
                         BuildCandidate(with_lines, limits, PythonRuntime(), "", "", stop));
  if (built.failure) return none;
  ASSAY_ASSIGN_OR_RETURN(const std::string listing, List(built.artifact, stop));
  NativeCode code = ReadNativeListing(listing, EntryPath(source));
  code.machine_vector_bits = VectorBits();
  return code;
}

}  // namespace assay
