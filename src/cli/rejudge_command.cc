#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/exit_code.h"
#include "cli/recorder.h"
#include "cli/submit_command.h"
#include "doctor/doctor.h"
#include "model/verdict_json.h"
#include "report/card.h"
#include "report/progress.h"
#include "report/terminal.h"
#include "report/text.h"
#include "runner/bundle.h"
#include "runner/server_link.h"
#include "worker/protocol.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSchema = "assay.rejudge/1";

Result<Bundle> FetchBundle(const RejudgeOptions& options, StopToken stop) {
  ASSAY_ASSIGN_OR_RETURN(const VerdictUrl url, ParseVerdictUrl(options.url));
  ASSAY_ASSIGN_OR_RETURN(const std::string base, ParseServerUrl(url.server));
  ASSAY_ASSIGN_OR_RETURN(ApiKey token, ReadServerToken(options.token_file));
  ServerCall call;
  call.path = fmt::format("/api/verdicts/{}/bundle", url.id);
  const ServerLink server(base, std::move(token), MakeHttpClient());
  const ServerReply reply = server.Call(call, stop);
  if (reply.kind != ServerReply::Kind::kDone) return std::unexpected(reply.error);
  ASSAY_ASSIGN_OR_RETURN(Bundle bundle, ParseBundle(reply.body));
  if (bundle.verdict.id != url.id)
    return UsageError(
        fmt::format("the server gave the bundle of another verdict, {}", bundle.verdict.id));
  return bundle;
}

// The same judgement, by this machine.
Result<Verdict> JudgeHere(const RejudgeOptions& options, const Bundle& bundle, StopToken stop) {
  const std::vector<std::string> suites = SuiteFolders();
  const std::string device = !options.device.empty()              ? options.device
                             : bundle.verdict.machine.gpu.empty() ? "cpu"
                                                                  : "cuda";
  ASSAY_ASSIGN_OR_RETURN(JobFiles files, JobFiles::Create());
  ASSAY_ASSIGN_OR_RETURN(const std::string line,
                         WorkerLine(JobOfBundle(bundle, suites), device, suites, files));
  std::string id;
  ASSAY_ASSIGN_OR_RETURN(WorkerRequest asked, ParseWorkerRequest(line, &id));
  asked.terms.python = options.python;
  asked.terms.effort.correctness_only = asked.kind == WorkerRequest::Kind::kCheck;
  JudgeRequest request;
  request.candidates = asked.candidates;
  ASSAY_ASSIGN_OR_RETURN(request.terms, ResolveTerms(asked.terms, request.candidates));
  request.bar = asked.terms.bar();
  std::string notice;
  request.terms.machine = LoadMachineProfile(&notice);
  if (!notice.empty()) Notice(notice);
  ProgressOptions shown;
  if (!options.quiet) shown.terminal = DetectTerminal(STDERR_FILENO);
  shown.verbose = options.verbose && !options.quiet;
  Progress progress(shown);
  std::optional<Verdict> verdict;
  JudgeEvents events;
  events.progress = [&](const ProgressEvent& event) {
    progress.Update(event.text, event.fraction);
  };
  events.verdict = [&](const Verdict& made) { verdict = made; };
  const auto judged = JudgeCandidates(request, events, stop);
  progress.Clear();
  if (!verdict) {
    if (!judged) return std::unexpected(UnlessInterrupted(judged.error()));
    return EnvironmentError("no verdict was made");
  }
  Recorder(options.archive, options.no_save)
      .Judged({bundle.candidate.name, bundle.candidate.source, verdict->problem.name,
               TermsText(asked.terms)},
              *verdict);
  return *std::move(verdict);
}

void Show(const RejudgeOptions& options, const Bundle& bundle, const Verdict& here,
          const Agreement& agreement, bool saved) {
  const Verdict& there = bundle.verdict;
  if (options.json) {
    const Json document = {{"schema", kSchema},
                           {"agreement", AgreementName(agreement.kind)},
                           {"text", agreement.text},
                           {"there", Json::parse(VerdictToJson(there, -1))},
                           {"here", Json::parse(VerdictToJson(here, -1))}};
    std::fputs((document.dump(2) + "\n").c_str(), stdout);
    return;
  }
  CardStyle style = CardStyleFor(DetectTerminal(STDOUT_FILENO));
  style.saved = saved;
  std::fputs(RenderCard(here, style).c_str(), stdout);
  const auto machine = [](const Verdict& verdict) {
    return verdict.machine.gpu.empty() ? verdict.machine.cpu : verdict.machine.gpu;
  };
  std::string text = Printable(agreement.text, style.unicode) + "\n";
  if (machine(there) != machine(here))
    text += Printable(fmt::format("another machine: {} there, {} here; speedups differ between "
                                  "machines",
                                  machine(there), machine(here)),
                      style.unicode) +
            "\n";
  std::fputs(text.c_str(), stdout);
}

int ExitCodeFor(Agreement::Kind kind) {
  switch (kind) {
    case Agreement::Kind::kAgrees:
      return kExitGood;
    case Agreement::Kind::kDiffers:
      return kExitNotFaster;
    case Agreement::Kind::kUndecided:
      return kExitUnsettled;
  }
  return kExitBug;
}

Result<int> Rejudge(const RejudgeOptions& options, StopToken stop) {
  ASSAY_ASSIGN_OR_RETURN(const Bundle bundle, FetchBundle(options, stop));
  HeedWeakSandboxFlag(options.allow_weak_sandbox);
  ASSAY_ASSIGN_OR_RETURN(const Verdict here, JudgeHere(options, bundle, stop));
  const bool saved = !options.no_save && KeepVerdict(here);
  const Agreement agreement = Compare(bundle.verdict, here);
  Show(options, bundle, here, agreement, saved);
  return ExitCodeFor(agreement.kind);
}

}  // namespace

int RunRejudge(const RejudgeOptions& options) {
  const StopToken stop(InstallInterruptHandler());
  const auto code = Rejudge(options, stop);
  if (!code) return ReportError(code.error(), options.json ? JsonForm::kDocument : JsonForm::kNone);
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    return ReportError({ErrorKind::kEnvironment, "cannot write to stdout"});
  return *code;
}

}  // namespace assay
