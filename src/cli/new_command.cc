#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "base/files.h"
#include "cli/exit_code.h"
#include "cli/options.h"
#include "machine/machine.h"
#include "problem/suite.h"
#include "values/oracle.h"

namespace assay {

int RunNew(const NewOptions& options) {
  InstallInterruptHandler();
  auto request = options.problem.Resolve();
  if (!request) return ReportError(request.error());
  const std::string output = options.output.empty()
                                 ? request->name + std::string(StubSuffix(options.form))
                                 : options.output;
  if (output != "-" && !options.force && std::filesystem::exists(output))
    return ReportError(
        {ErrorKind::kUsage,
         fmt::format("{} exists: name another file with -o, or add --force", output)});
  HeedWeakSandboxFlag(options.allow_weak_sandbox);
  if (auto sandbox = RequireSandbox(); !sandbox) return ReportError(sandbox.error());
  auto python = FindPython(options.python);
  if (!python) return ReportError(python.error());
  OracleOptions oracle_options;
  oracle_options.problem = *request;
  oracle_options.python = *python;
  oracle_options.memory_bytes = AvailableMemoryBytes() / 4 * 3;
  auto oracle = Oracle::Open(std::move(oracle_options));
  if (!oracle) return ReportError(oracle.error());
  auto stub = WriteStub(*request, oracle->description(), options.form, output == "-" ? "" : output);
  if (!stub) return ReportError(stub.error());
  if (output == "-") {
    std::fputs(stub->c_str(), stdout);
    return 0;
  }
  if (auto written = WriteFileAtomically(output, *stub); !written)
    return ReportError(written.error());
  std::fputs(fmt::format("wrote {}\n", output).c_str(), stdout);
  return 0;
}

}  // namespace assay
