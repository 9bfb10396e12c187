#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "base/files.h"
#include "cli/exit_code.h"
#include "cli/options.h"
#include "model/verdict_json.h"
#include "problem/gradients.h"
#include "problem/suite.h"
#include "session/asked_terms.h"
#include "studies/explain.h"

namespace assay {
namespace {

// The newest saved verdict, as its file's name without the suffix.
Result<std::string> LastVerdict() {
  namespace fs = std::filesystem;
  std::error_code code;
  fs::path newest;
  fs::file_time_type newest_time;
  for (const auto& entry : fs::directory_iterator(StateFolder() / "verdicts", code)) {
    const auto time = entry.last_write_time(code);
    if (code || entry.path().extension() != ".json") continue;
    if (newest.empty() || time > newest_time) {
      newest = entry.path();
      newest_time = time;
    }
  }
  if (newest.empty()) return UsageError("no verdict is saved yet: judge a candidate first");
  return newest.stem().string();
}

// A file's path, the id of a verdict that `assay judge` saved, or "last".
Result<Verdict> FindVerdict(std::string name) {
  if (name == "last" && !std::filesystem::exists(name)) {
    ASSAY_ASSIGN_OR_RETURN(name, LastVerdict());
  }
  const bool is_id =
      name.find_first_not_of("0123456789abcdef") == std::string::npos && !name.empty();
  const std::filesystem::path saved = StateFolder() / "verdicts" / (name + ".json");
  const bool use_saved = is_id && !std::filesystem::exists(name);
  if (use_saved && !std::filesystem::exists(saved))
    return UsageError(fmt::format(
        "no saved verdict has the id {}; give a file with a verdict's JSON, or judge again", name));
  ASSAY_ASSIGN_OR_RETURN(const std::string text,
                         ReadFile(use_saved ? saved : std::filesystem::path(name), 64 << 20));
  return VerdictFromJson(text);
}

Result<ExplainResult> Explain(const ExplainOptions& options) {
  ExplainRequest request;
  request.stop = StopToken(InstallInterruptHandler());
  ASSAY_ASSIGN_OR_RETURN(request.verdict, FindVerdict(options.verdict));
  const ProblemRecord& problem = request.verdict.problem;
  const bool gradients = HasGradients(problem);
  ASSAY_ASSIGN_OR_RETURN(
      request.problem, ResolveProblem({problem.path, "", problem.set, gradients}, SuiteFolders()));
  request.problem.set = problem.set;
  ASSAY_ASSIGN_OR_RETURN(CandidateSource candidate, ReadCandidate(request.verdict.candidate.path));
  if (gradients) {
    ASSAY_ASSIGN_OR_RETURN(candidate, WithGradients(std::move(candidate)));
  }
  request.candidate_source = std::move(candidate.content);
  request.folder = options.output.empty() ? "explain-" + request.verdict.id : options.output;
  request.python = options.python;
  return ExplainVerdict(request);
}

}  // namespace

int RunExplain(const ExplainOptions& options) {
  HeedWeakSandboxFlag(options.allow_weak_sandbox);
  const auto result = Explain(options);
  if (!result) return ReportError(result.error());
  std::fputs(fmt::format("wrote the call on {} inputs to {}\nrun it:\n  {}\n", result->draw,
                         result->folder, result->command)
                 .c_str(),
             stdout);
  if (!result->note.empty()) std::fputs((result->note + "\n").c_str(), stdout);
  return 0;
}

}  // namespace assay
