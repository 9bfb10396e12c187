#include "formats/python_reader.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/files.h"
#include "sandbox/sandbox.h"

namespace assay {
namespace {

constexpr int kLacksPackage = 3;  // foreign.py's exit code
constexpr double kTimeLimitS = 300;
constexpr uint64_t kBytesMax = uint64_t{1} << 30;
constexpr const char* kOutput = "/tmp/lines.jsonl";

Result<std::string> Read(const PythonRuntime& python, std::string_view kind,
                         const std::string& content) {
  ASSAY_ASSIGN_OR_RETURN(const std::string support, SupportFolder());
  ASSAY_ASSIGN_OR_RETURN(std::string program,
                         ReadFile(std::filesystem::path(support) / kForeignReaderFile, 1 << 20));
  SandboxRequest request;
  request.arguments = {python.executable, "-B",           "-s",   "/assay/foreign.py",
                       std::string(kind), "/assay/input", kOutput};
  request.environment = HostEnvironment(1);
  for (const std::string& folder : python.folders) request.binds.push_back({folder, folder});
  request.files.push_back({"/assay/foreign.py", std::move(program), false});
  request.files.push_back({"/assay/input", content, false});
  request.limits.file_bytes = request.limits.scratch_bytes = kBytesMax;
  request.may_start_processes = true;  // threads of pyarrow
  ASSAY_ASSIGN_OR_RETURN(ToolRun run, RunToolInSandbox(std::move(request), kOutput,
                                                       Deadline::AfterSeconds(kTimeLimitS)));
  if (run.timed_out)
    return EnvironmentError(fmt::format("reading {} took over {} s", kind, kTimeLimitS));
  if (run.exit.exited && run.exit.status == kLacksPackage)
    return EnvironmentError(fmt::format(
        "{} lacks the package that reads {}: install {}, or give the rows as JSON lines",
        python.executable, kind,
        kind == "yaml" ? "python3-yaml (PyYAML)" : "pyarrow (pip install pyarrow)"));
  if (!run.exit.exited || run.exit.status != 0)
    return UsageError(fmt::format("it is no {} file: {}", kind, run.output));
  return std::move(run.artifact);
}

}  // namespace

ForeignReader ReaderInSandbox(const PythonRuntime& python) {
  return [python](std::string_view kind, const std::string& content) {
    return Read(python, kind, content);
  };
}

}  // namespace assay
