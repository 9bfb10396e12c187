#include "cli/formats_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "base/files.h"
#include "cli/exit_code.h"
#include "formats/evaluators.h"
#include "formats/imported.h"
#include "formats/python_reader.h"
#include "formats/results_out.h"
#include "hosts/python_runtime.h"
#include "machine/machine.h"
#include "problem/suite.h"
#include "report/text.h"
#include "values/oracle.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr size_t kOriginBytesMax = size_t{1} << 30;
constexpr size_t kLeftOutShown = 20;

// The reader that is found when a file needs it: most formats need neither Python nor the sandbox.
ForeignReader ReaderWhenNeeded(const std::string& python) {
  return [python](std::string_view kind, const std::string& content) -> Result<std::string> {
    ASSAY_RETURN_IF_ERROR(RequireSandbox());
    ASSAY_ASSIGN_OR_RETURN(const PythonRuntime runtime, FindPython(python));
    return ReaderInSandbox(runtime)(kind, content);
  };
}

Result<void> WriteFiles(const ExportedFiles& files, const std::string& folder, bool force) {
  std::error_code code;
  if (!force && fs::exists(folder, code) && !fs::is_empty(folder, code))
    return UsageError(fmt::format(
        "{} is not empty: name another folder with -o, or add --force to write into it", folder));
  for (const auto& [path, content] : files)
    ASSAY_RETURN_IF_ERROR(WriteFileAtomically(fs::path(folder) / path, content));
  return {};
}

Result<ExportedFiles> ResultFiles(const ExportOptions& options) {
  const fs::path folder(options.problem.problem);
  ASSAY_ASSIGN_OR_RETURN(const std::vector<RunRow> rows,
                         ReadRunRows((folder / kRunRowsName).string()));
  ASSAY_ASSIGN_OR_RETURN(const std::string origins,
                         ReadFile(folder / kOriginName, kOriginBytesMax));
  ASSAY_ASSIGN_OR_RETURN(const auto judged, PairWithOrigins(rows, origins));
  ExportedFiles files =
      options.kind == "popcorn" ? PopcornResults(judged) : FlashInferTraces(judged);
  if (files.empty())
    return UsageError(fmt::format("{} has no verdict on a candidate that was imported as {}",
                                  folder.string(), options.kind));
  return files;
}

Result<std::string> InitialProgram(const ExportOptions& options, const ProblemRequest& request) {
  ASSAY_RETURN_IF_ERROR(RequireSandbox());
  OracleOptions oracle_options;
  oracle_options.problem = request;
  ASSAY_ASSIGN_OR_RETURN(oracle_options.python, FindPython(options.python));
  oracle_options.memory_bytes = AvailableMemoryBytes() / 4 * 3;
  ASSAY_ASSIGN_OR_RETURN(Oracle oracle, Oracle::Open(std::move(oracle_options)));
  return WriteStub(request, oracle.description(), options.form, "");
}

Result<ExportedFiles> EvaluatorFilesOf(const ExportOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(const ProblemRequest request, options.problem.Resolve());
  EvaluatorTerms terms;
  terms.name = request.name;
  std::error_code code;
  const std::string& problem = options.problem.problem;
  terms.arguments.push_back(
      fs::is_regular_file(problem, code) ? fs::absolute(problem, code).string() : problem);
  if (!options.problem.size.empty())
    terms.arguments.insert(terms.arguments.end(), {"--size", options.problem.size});
  for (const std::string& setting : options.problem.set)
    terms.arguments.insert(terms.arguments.end(), {"--set", setting});
  if (options.problem.gradients) terms.arguments.emplace_back("--grad");
  if (TakesInitialProgram(options.kind)) {
    ASSAY_ASSIGN_OR_RETURN(terms.initial, InitialProgram(options, request));
    terms.suffix = StubSuffix(options.form);
  }
  ASSAY_ASSIGN_OR_RETURN(const std::string support, SupportFolder());
  return EvaluatorFiles(options.kind, (fs::path(support) / "exports").string(), terms);
}

}  // namespace

int RunImport(const ImportOptions& options) {
  InstallInterruptHandler();
  HeedWeakSandboxFlag(options.allow_weak_sandbox);
  const ImportRequest request{options.paths, ReaderWhenNeeded(options.python), options.limit};
  const auto imported = Import(options.kind, request);
  if (!imported) return ReportError(imported.error());
  for (size_t i = 0; i < imported->left_out.size() && i < kLeftOutShown; ++i)
    Notice("left out: " + imported->left_out[i]);
  for (const std::string& note : imported->notes) Notice(note);
  if (imported->left_out.size() > kLeftOutShown)
    Notice(fmt::format("left out: {} more", imported->left_out.size() - kLeftOutShown));
  if (imported->candidates.empty())
    return ReportError({ErrorKind::kUsage, "there is no candidate to judge: nothing is written"});
  const std::string folder = options.output.empty() ? options.kind : options.output;
  if (const auto written = WriteImported(*imported, folder, options.force); !written)
    return ReportError(written.error());
  std::fputs(fmt::format("wrote {} of {} to {}: assay run {}\n",
                         Counted(static_cast<int64_t>(imported->candidates.size()), "candidate"),
                         Counted(static_cast<int64_t>(imported->problems.size()), "problem"),
                         folder, (fs::path(folder) / kManifestName).string())
                 .c_str(),
             stdout);
  return kExitGood;
}

int RunExport(const ExportOptions& options) {
  InstallInterruptHandler();
  HeedWeakSandboxFlag(options.allow_weak_sandbox);
  const bool results = options.kind == "popcorn" || options.kind == "flashinfer";
  const auto files = results ? ResultFiles(options) : EvaluatorFilesOf(options);
  if (!files) return ReportError(files.error());
  const std::string folder =
      options.output.empty() ? options.kind + (results ? "-results" : "") : options.output;
  if (const auto written = WriteFiles(*files, folder, options.force); !written)
    return ReportError(written.error());
  std::fputs(
      fmt::format("wrote {} to {}\n", Counted(static_cast<int64_t>(files->size()), "file"), folder)
          .c_str(),
      stdout);
  return kExitGood;
}

}  // namespace assay
