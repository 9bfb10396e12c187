#include "cli/worklog_judge.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/hash.h"
#include "cli/options.h"
#include "cli/search_parts.h"
#include "doctor/doctor.h"
#include "report/progress.h"
#include "report/terminal.h"
#include "session/judge.h"
#include "worker/protocol.h"

namespace assay {

Result<Verdict> JudgeVersion(const MatchBegun& begun, const CandidateSource& source, bool quiet,
                             const std::atomic<bool>& interrupted) {
  ASSAY_ASSIGN_OR_RETURN(const AskedTerms asked, RecordedTerms(begun.terms));
  JudgeRequest request;
  request.candidates.push_back(source);
  ASSAY_ASSIGN_OR_RETURN(request.terms, ResolveTerms(asked, request.candidates));
  if (Sha256Hex(request.terms.problem.source) != begun.reference_hash)
    return UsageError(
        fmt::format("{} is not the file that this match began with: both sides get the same "
                    "reference, so bring it back, or begin another worklog",
                    request.terms.problem.path));
  std::string notice;
  request.terms.machine = LoadMachineProfile(&notice);
  if (!notice.empty()) Notice(notice);
  ProgressOptions progress_options;
  if (!quiet) progress_options.terminal = DetectTerminal(STDERR_FILENO);
  Progress progress(progress_options);
  std::optional<Verdict> given;
  std::optional<Error> unjudged;
  JudgeEvents events;
  events.progress = [&](const ProgressEvent& event) {
    progress.Update(event.text, event.fraction);
  };
  events.verdict = [&](const Verdict& verdict) { given = verdict; };
  events.notice = [&](const std::string& text) {
    progress.Clear();
    if (!quiet) Notice(text);
  };
  events.unjudged = [&](const Error& error) { unjudged = error; };
  const auto judged = JudgeCandidates(request, events, StopToken(interrupted));
  progress.Clear();
  if (given) return std::move(*given);
  if (unjudged) return std::unexpected(*unjudged);
  if (!judged) return std::unexpected(UnlessInterrupted(judged.error()));
  return EnvironmentError("nothing was judged");
}

Result<std::string> WithOpponent(const std::string& terms, const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(AskedTerms asked, RecordedTerms(terms));
  asked.against = path;
  return TermsText(asked);
}

Result<std::string> WithBudget(const std::string& terms, double budget_s) {
  ASSAY_ASSIGN_OR_RETURN(AskedTerms asked, RecordedTerms(terms));
  asked.effort.speed_budget_s = budget_s;
  return TermsText(asked);
}

}  // namespace assay
