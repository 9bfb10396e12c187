#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "cli/exit_code.h"
#include "cli/options.h"
#include "cli/recorder.h"
#include "doctor/doctor.h"
#include "model/verdict_json.h"
#include "report/card.h"
#include "report/probe_text.h"
#include "report/progress.h"
#include "report/terminal.h"
#include "report/text.h"
#include "score/fast_p.h"
#include "toolchain/gpu_tools.h"
#include "worker/protocol.h"

namespace assay {
namespace {

// The sanitizer that is to look at candidates, which must be there before any work is done.
Result<void> AddSanitizer(const JudgeOptions& options, JudgeRequest* request) {
  if (options.sanitize.empty()) return {};
  if (request->terms.problem.device != "cuda") return UsageError(NeedsGpu("--sanitize"));
  ASSAY_ASSIGN_OR_RETURN(GpuTool program, FindComputeSanitizer());
  request->terms.tools.sanitizer = SanitizerChoice{std::move(program), options.sanitize};
  return {};
}

Result<JudgeRequest> MakeRequest(const JudgeOptions& options) {
  JudgeRequest request;
  AskedTerms asked = options.asked;
  ASSAY_ASSIGN_OR_RETURN(asked.problem, options.problem.Choice());
  for (const std::string& path : options.candidates) {
    ASSAY_ASSIGN_OR_RETURN(CandidateSource source, ReadCandidate(path));
    ASSAY_ASSIGN_OR_RETURN(source, AsAsked(std::move(source), asked));
    request.candidates.push_back(std::move(source));
  }
  ASSAY_ASSIGN_OR_RETURN(request.terms, ResolveTerms(asked, request.candidates));
  request.bar = asked.bar();
  ASSAY_RETURN_IF_ERROR(AddSanitizer(options, &request));
  return request;
}

// Records a judgement in the archive.
class JudgeRecord {
 public:
  JudgeRecord(const JudgeOptions& options, const JudgeRequest& request)
      : request_(request), recorder_(options.archive, options.no_save) {
    AskedTerms terms = options.asked;
    if (const auto choice = options.problem.Choice()) terms.problem = *choice;
    terms.device = request.terms.problem.device;
    nlohmann::ordered_json json = nlohmann::ordered_json::parse(TermsText(terms));
    if (!terms.ragged.empty()) json["ragged"] = terms.ragged;
    if (terms.seed != 0) json["seed"] = fmt::format("{}", terms.seed);
    terms_ = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  }

  void Judged(const Verdict& verdict) {
    JudgedSource judged{verdict.candidate.path, "", verdict.problem.name, terms_};
    for (const CandidateSource& source : request_.candidates)
      if (source.hash == verdict.candidate.hash) judged.content = source.content;
    recorder_.Judged(judged, verdict);
  }
  // Of which candidate, the error says.
  void Unjudged(const Error& error) {
    recorder_.Unjudged({"", "", request_.terms.problem.name, terms_}, error);
  }

 private:
  const JudgeRequest& request_;
  Recorder recorder_;
  std::string terms_;
};

// Shows a judgement as it goes: cards, one document at the end, or a line an event.
class JudgeOutput {
 public:
  JudgeOutput(const JudgeOptions& options, size_t asked)
      : options_(options),
        asked_(asked),
        style_(CardStyleFor(DetectTerminal(STDOUT_FILENO))),
        progress_(OptionsFor(options)) {}

  void Progressed(const ProgressEvent& event) {
    const std::string label = event.candidates > 1 && event.stage != JudgeStage::kBuilding
                                  ? fmt::format(" [{}/{}]", event.candidate + 1, event.candidates)
                                  : "";
    progress_.Update(event.text + label, event.fraction);
    if (options_.jsonl)
      Event({{"event", "progress"}, {"stage", event.text + label}, {"fraction", event.fraction}});
  }
  void Noticed(const std::string& text) {
    progress_.Clear();
    if (!options_.quiet) Notice(text);
  }
  void Judged(const Verdict& verdict, bool saved) {
    progress_.Clear();
    if (options_.jsonl)
      Event({{"event", "verdict"}, {"verdict", Json::parse(VerdictToJson(verdict, -1))}});
    style_.saved = saved;
    if (!options_.json && !options_.jsonl) {
      std::fputs(RenderCard(verdict, style_).c_str(), stdout);
      if (verdict.probe && !verdict.probe->failure.empty())
        std::fputs(fmt::format("--probe shows nothing: {}\n",
                               Printable(verdict.probe->failure, style_.unicode))
                       .c_str(),
                   stdout);
      else if (verdict.probe)
        std::fputs((ProbeText(verdict) + "\n").c_str(), stdout);
    }
    std::fflush(stdout);
    documents_.push_back(VerdictToJson(verdict, 2));
    verdicts_.push_back(verdict);
  }
  // The error that ended the call, or stands in the place of a verdict.
  void Failed(const Error& error) {
    progress_.Clear();
    if (options_.jsonl) std::fputs(ErrorEvent(error).c_str(), stdout);
    documents_.push_back(ErrorDocument(error));
  }
  void Ended(int exit_code) {
    progress_.Clear();
    if (options_.jsonl) {
      Event({{"event", "end"}, {"exit_code", exit_code}});
    } else if (options_.json) {
      Documents();
    } else if (asked_ > 1 && !verdicts_.empty()) {
      std::fputs((Summary() + "\n").c_str(), stdout);
    }
  }
  const std::vector<Verdict>& verdicts() const { return verdicts_; }

 private:
  using Json = nlohmann::ordered_json;

  // Of several candidates.
  std::string Summary() const {
    const auto asked = static_cast<int64_t>(asked_);
    if (options_.asked.effort.correctness_only)
      return fmt::format("{} of {} correct", PlainFastP(verdicts_, 0, asked).count, asked);
    return fmt::format("{}; {}",
                       RenderFastP(PlainFastP(verdicts_, options_.asked.threshold, asked)),
                       RenderFastP(CertifiedFastP(verdicts_, options_.asked.threshold, asked)));
  }

  static ProgressOptions OptionsFor(const JudgeOptions& options) {
    ProgressOptions progress;
    if (!options.quiet) progress.terminal = DetectTerminal(STDERR_FILENO);
    progress.verbose = options.verbose && !options.quiet;
    return progress;
  }
  static void Event(Json event) {
    const Json whole = [&] {
      Json line = {{"schema", "assay.event/1"}};
      line.update(event);
      return line;
    }();
    std::fputs((whole.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n").c_str(), stdout);
    std::fflush(stdout);
  }
  void Documents() const {
    std::string text;
    for (const std::string& document : documents_) text += (text.empty() ? "" : ",\n") + document;
    if (asked_ > 1) text = "[" + text + "]";
    if (!text.empty()) std::fputs((text + "\n").c_str(), stdout);
  }

  const JudgeOptions& options_;
  size_t asked_;
  CardStyle style_;
  Progress progress_;
  std::vector<Verdict> verdicts_;
  std::vector<std::string> documents_;  // verdicts and errors, in their order
};

}  // namespace

int RunJudge(const JudgeOptions& options) {
  const std::atomic<bool>& interrupted = InstallInterruptHandler();
  auto request = MakeRequest(options);
  if (!request)
    return ReportError(request.error(), options.jsonl  ? JsonForm::kLines
                                        : options.json ? JsonForm::kDocument
                                                       : JsonForm::kNone);
  HeedWeakSandboxFlag(options.allow_weak_sandbox);
  std::string notice;
  request->terms.machine = LoadMachineProfile(&notice);
  if (!notice.empty()) Notice(notice);
  JudgeOutput output(options, request->candidates.size());
  JudgeRecord record(options, *request);
  JudgeEvents events;
  events.progress = [&](const ProgressEvent& event) { output.Progressed(event); };
  events.verdict = [&](const Verdict& verdict) {
    record.Judged(verdict);
    output.Judged(verdict, !options.no_save && KeepVerdict(verdict));
  };
  events.notice = [&](const std::string& text) { output.Noticed(text); };
  events.unjudged = [&](const Error& error) {
    output.Failed(error);
    record.Unjudged(error);
  };
  const auto judged = JudgeCandidates(*request, events, StopToken(interrupted));
  std::vector<int> codes;
  for (const Verdict& verdict : output.verdicts()) codes.push_back(ExitCodeOf(verdict.outcome));
  if (!judged) {
    const Error error = UnlessInterrupted(judged.error());
    codes.push_back(ExitCodeOf(error.kind));
    // Verdicts from before an interrupt stand alone; candidates that lack something were told.
    if (error.kind == ErrorKind::kUsage || error.kind == ErrorKind::kEnvironment)
      output.Failed(error);
  }
  const int code = CombineExitCodes(codes);
  if (!output.verdicts().empty())
    if (const std::string text = GpuNotice(request->terms.machine, output.verdicts().back());
        !text.empty())
      Notice(text);
  output.Ended(code);
  if (!judged) ReportError(judged.error());
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    return ReportError({ErrorKind::kEnvironment,
                        options.no_save ? "cannot write the verdict to stdout"
                                        : "cannot write the verdict to stdout; it is saved: see "
                                          "assay explain last"});
  return code;
}

}  // namespace assay
