#include "cli/submit_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "cli/exit_code.h"
#include "cli/print.h"
#include "machine/seeds.h"
#include "model/verdict_json.h"
#include "report/card.h"
#include "report/progress.h"
#include "report/terminal.h"
#include "report/text.h"
#include "runner/submitted_job.h"
#include "toolchain/build.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kForNobody = ", and no runner that is there takes it";

std::string PlaceText(const JobStatus& job) {
  return fmt::format("job {}: place {} in the queue{}", job.id, job.place,
                     job.for_nobody ? kForNobody : "");
}

// Shows a job as it goes, on stderr.
class JobProgress {
 public:
  explicit JobProgress(const SubmitOptions& options)
      : quiet_(options.quiet), progress_(OptionsFor(options)) {}

  FollowEvents Events() {
    FollowEvents events;
    events.job = [this](const JobStatus& job) { Moved(job); };
    events.event = [this](const std::string& event) { Heard(event); };
    events.notice = [this](const std::string& text) {
      progress_.Clear();
      if (!quiet_) Notice(Printable(text, true));
    };
    return events;
  }
  void Clear() { progress_.Clear(); }

 private:
  static ProgressOptions OptionsFor(const SubmitOptions& options) {
    ProgressOptions progress;
    if (!options.quiet) progress.terminal = DetectTerminal(STDERR_FILENO);
    progress.verbose = options.verbose && !options.quiet;
    return progress;
  }
  void Moved(const JobStatus& job) {
    if (job.state == "queued")
      progress_.Update(PlaceText(job), -1);
    else if (!job.has_ended())
      progress_.Update(fmt::format("job {}: at the runner {}", job.id, job.runner), -1);
  }
  void Heard(const std::string& event) {
    const Json json = Json::parse(event, nullptr, false);
    if (!json.is_object() || !json.contains("text") || !json["text"].is_string()) return;
    const auto fraction = json.find("fraction");
    progress_.Update(
        Printable(json["text"].get<std::string>(), true),
        fraction != json.end() && fraction->is_number() ? fraction->get<double>() : -1);
  }

  const bool quiet_;
  Progress progress_;
};

class Submitter {
 public:
  Submitter(const SubmitOptions& options, const ServerLink& server, StopToken stop)
      : options_(options),
        server_(server),
        stop_(stop),
        progress_(options),
        job_(server, RealRepeats(), {}, progress_.Events()) {}

  Result<int> Run() {
    if (!options_.cancel.empty()) {
      ASSAY_ASSIGN_OR_RETURN(const JobStatus job, job_.Cancel(options_.cancel, stop_));
      Show(job);
      return kExitGood;
    }
    if (!options_.status.empty()) {
      ASSAY_ASSIGN_OR_RETURN(const JobStatus job, job_.Look(options_.status, stop_));
      if (job.has_ended()) return End(job, "");
      Show(job);
      return kExitGood;
    }
    return Submit();
  }

 private:
  Result<int> Submit() {
    if (options_.problem.problem.empty() || options_.candidate.empty())
      return UsageError("give a PROBLEM and a CANDIDATE, or --status or --cancel with a handle");
    ASSAY_ASSIGN_OR_RETURN(const CandidateSource source, ReadCandidate(options_.candidate));
    ASSAY_ASSIGN_OR_RETURN(const ProblemChoice choice, options_.problem.Choice());
    SubmitRequest submission{choice.problem,
                             choice.size,
                             std::filesystem::path(source.path).filename().string(),
                             source.content,
                             choice.set,
                             options_.against,
                             Sha256Hex(fmt::format("submission {}", FreshSeed())).substr(0, 32)};
    ASSAY_ASSIGN_OR_RETURN(JobStatus job, job_.Submit(submission, stop_));
    progress_.Clear();
    if (options_.no_wait) {
      Show(job);
      return kExitGood;
    }
    if (!options_.quiet) Notice(PlaceText(job));
    auto ended = job_.Follow(job.id, stop_);
    progress_.Clear();
    if (!ended) {
      ended.error().message += fmt::format("; job {} goes on: assay submit --status {} --server {}",
                                           job.id, job.id, server_.base());
      // Ctrl-C says no more than "interrupted" elsewhere; here the handle matters.
      if (ended.error().kind == ErrorKind::kInterrupted) Notice(ended.error().message);
      return std::unexpected(ended.error());
    }
    return End(*ended, source.hash);
  }

  // One line, or the server's own words.
  void Show(const JobStatus& job) const {
    if (options_.json) return Print(job.json + "\n");
    const bool unicode = DetectTerminal(STDOUT_FILENO).unicode;
    std::string line = fmt::format("job {}  {}", job.id, job.state);
    if (job.place > 0) line += fmt::format(", place {} in the queue", job.place);
    if (job.for_nobody) line += kForNobody;
    if (job.state == "running") line += fmt::format(" at {}", job.runner);
    line += fmt::format("  {} {}  {}", job.problem, job.size, job.name);
    if (!job.outcome.empty()) line += "  " + job.outcome;
    if (!job.failure.empty()) line += "  " + job.failure;
    Print(Printable(line, unicode) + "\n");
  }

  // Shows the verdict. `hash`: of the source that was sent; empty: not known here.
  Result<int> End(const JobStatus& job, const std::string& hash) {
    if (job.state == "cancelled")
      return Fail(ErrorKind::kInterrupted, fmt::format("job {} was cancelled", job.id));
    if (job.state == "failed" || job.verdict.empty())
      return EnvironmentError(
          fmt::format("job {} has no verdict: {}", job.id, Printable(job.failure, true)));
    ASSAY_ASSIGN_OR_RETURN(const std::string text, job_.Verdict(job.verdict, stop_));
    ASSAY_ASSIGN_OR_RETURN(const Verdict verdict, VerdictFromJson(text));
    if (!hash.empty() && verdict.candidate.hash != hash)
      return EnvironmentError(fmt::format(
          "the verdict of job {} is on another source than the one that was sent", job.id));
    if (options_.json) {
      Print(VerdictToJson(verdict, 2) + "\n");
    } else {
      CardStyle style = CardStyleFor(DetectTerminal(STDOUT_FILENO));
      style.saved = style.here = false;
      Print(RenderCard(verdict, style));
      Print(Printable(fmt::format("{}/verdicts/{}", server_.base(), verdict.id), style.unicode) +
            "\n");
    }
    return ExitCodeOf(verdict.outcome);
  }

  const SubmitOptions& options_;
  const ServerLink& server_;
  const StopToken stop_;
  JobProgress progress_;
  SubmittedJob job_;
};

Result<int> Submit(const SubmitOptions& options, StopToken stop) {
  ASSAY_ASSIGN_OR_RETURN(const std::string url, ParseServerUrl(options.server));
  ASSAY_ASSIGN_OR_RETURN(ApiKey token, ReadServerToken(options.token_file));
  const ServerLink server(url, std::move(token), MakeHttpClient());
  return Submitter(options, server, stop).Run();
}

}  // namespace

int RunSubmit(const SubmitOptions& options) {
  const StopToken stop(InstallInterruptHandler());
  const auto code = Submit(options, stop);
  if (!code) return ReportError(code.error(), options.json ? JsonForm::kDocument : JsonForm::kNone);
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    return ReportError({ErrorKind::kEnvironment, "cannot write to stdout"});
  return *code;
}

}  // namespace assay
