#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files.h"
#include "cli/exit_code.h"
#include "cli/options.h"
#include "doctor/doctor.h"
#include "model/verdict_json.h"
#include "report/card.h"
#include "report/progress.h"
#include "report/terminal.h"
#include "score/fast_p.h"
#include "toolchain/gpu_tools.h"

namespace assay {
namespace {

constexpr std::string_view kBaselines[] = {"eager", "compiled", "compiled-reduce-overhead",
                                           "compiled-max-autotune"};

std::vector<std::string> SplitCommas(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

// "512M", "4G", "4GiB" or plain bytes.
Result<uint64_t> ParseBytes(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  std::string unit(end);
  if (unit.ends_with("iB")) unit.resize(unit.size() - 2);
  const double scale = unit.empty()  ? 1
                       : unit == "K" ? 0x1p10
                       : unit == "M" ? 0x1p20
                       : unit == "G" ? 0x1p30
                                     : 0;
  if (end == text.c_str() || scale == 0 || !(number > 0) || number * scale > 0x1p50)
    return UsageError(fmt::format("--memory {}: give a size such as 512M or 4G", text));
  return static_cast<uint64_t>(number * scale);
}

// Where all of them run: as asked for, or as they need.
Result<std::string> DeviceFor(const JudgeRequest& request, const std::string& asked) {
  std::vector<const CandidateSource*> sources;
  for (const CandidateSource& source : request.candidates) sources.push_back(&source);
  if (request.against) sources.push_back(&*request.against);
  const auto first = [&](bool (*fits)(const CandidateSource&)) {
    const auto found = std::find_if(sources.begin(), sources.end(),
                                    [&](const auto* source) { return fits(*source); });
    return found == sources.end() ? nullptr : *found;
  };
  const CandidateSource* on_device =
      first([](const CandidateSource& source) { return source.IsCuda(); });
  const CandidateSource* on_processor = first([](const CandidateSource& source) {
    return source.form == CandidateForm::kNative && !source.IsCuda();
  });
  const std::string device = !asked.empty() ? asked : on_device != nullptr ? "cuda" : "cpu";
  if (on_device != nullptr && device == "cpu")
    return UsageError(fmt::format("{} is CUDA: it cannot be judged on the CPU", on_device->path));
  if (on_processor != nullptr && device == "cuda")
    return UsageError(fmt::format("{} runs on the CPU: judge it apart from what runs on a GPU",
                                  on_processor->path));
  return device;
}

// The tools that are to look at candidates, which must be there before any work is done.
Result<void> AddTools(const JudgeOptions& options, JudgeRequest* request) {
  const char* option = options.profile ? "--profile" : "--sanitize";
  if ((options.profile || !options.sanitize.empty()) && request->problem.device != "cuda")
    return UsageError(fmt::format(
        "{} looks at what runs on a GPU: judge with --device cuda, or a candidate in CUDA",
        option));
  if (options.profile) {
    ASSAY_ASSIGN_OR_RETURN(request->profiler, FindNcu());
  }
  if (!options.sanitize.empty()) {
    ASSAY_ASSIGN_OR_RETURN(GpuTool program, FindComputeSanitizer());
    request->sanitizer = SanitizerChoice{std::move(program), options.sanitize};
  }
  return {};
}

Result<JudgeRequest> MakeRequest(const JudgeOptions& options) {
  JudgeRequest request;
  ASSAY_ASSIGN_OR_RETURN(request.problem, options.problem.Resolve());
  for (const std::string& path : options.candidates) {
    ASSAY_ASSIGN_OR_RETURN(CandidateSource source, ReadCandidate(path));
    request.candidates.push_back(std::move(source));
  }
  if (!options.against.empty()) {
    ASSAY_ASSIGN_OR_RETURN(request.against, ReadCandidate(options.against));
  }
  ASSAY_ASSIGN_OR_RETURN(request.problem.device, DeviceFor(request, options.device));
  ASSAY_RETURN_IF_ERROR(AddTools(options, &request));
  request.best_baseline = options.baselines == kBestBaseline;
  request.baselines = request.best_baseline
                          ? std::vector<std::string>(std::begin(kBaselines), std::end(kBaselines))
                          : SplitCommas(options.baselines);
  for (const std::string& baseline : request.baselines)
    if (std::find(std::begin(kBaselines), std::end(kBaselines), baseline) == std::end(kBaselines))
      return UsageError(fmt::format(
          "unknown baseline '{}': use {}, several of them, as eager,compiled, or {} alone",
          baseline, fmt::join(kBaselines, ", "), kBestBaseline));
  if (request.baselines.empty()) return UsageError("--baseline needs a name: eager or compiled");
  if (!std::isfinite(options.threshold) || options.threshold <= 0)
    return UsageError("--p takes a speedup above 0, such as 1 or 2");
  request.threshold = options.threshold;
  request.threads = options.threads;
  request.python = options.python;
  request.precision = options.precision;
  if (!options.precision.empty()) request.problem.precision = options.precision;
  request.tolerance = options.tolerance;
  if (!options.weights.empty()) request.problem.weights = options.weights;
  if (options.one_size) request.problem.ragged.clear();
  request.replay = !options.no_replay;
  request.seed = options.seed;
  request.speed_budget_s = options.budget_s;
  request.correctness_only = options.correctness_only;
  request.sustained_s = options.sustained_s;
  request.limits.call_timeout_s = options.timeout_s;
  request.limits.build_timeout_s = options.build_timeout_s;
  ASSAY_ASSIGN_OR_RETURN(request.limits.memory_bytes, ParseBytes(options.memory));
  return request;
}

// What a judgement shows as it goes: cards, one document at the end, or a line an event.
class JudgeOutput {
 public:
  JudgeOutput(const JudgeOptions& options, size_t asked)
      : options_(options),
        asked_(asked),
        style_(CardStyleFor(DetectTerminal(STDOUT_FILENO))),
        progress_(OptionsFor(options)) {}

  void Progressed(const std::string& stage, double fraction) {
    progress_.Update(stage, fraction);
    if (options_.jsonl) Event({{"event", "progress"}, {"stage", stage}, {"fraction", fraction}});
  }
  void Judged(const Verdict& verdict) {
    progress_.Clear();
    if (options_.jsonl)
      Event({{"event", "verdict"}, {"verdict", Json::parse(VerdictToJson(verdict, -1))}});
    else if (!options_.json)
      std::fputs(RenderCard(verdict, style_).c_str(), stdout);
    std::fflush(stdout);
    verdicts_.push_back(verdict);
  }
  void Ended(int exit_code) {
    progress_.Clear();
    if (options_.jsonl) {
      Event({{"event", "end"}, {"exit_code", exit_code}});
    } else if (options_.json) {
      Documents();
    } else if (asked_ > 1 && !verdicts_.empty()) {
      const auto asked = static_cast<int64_t>(asked_);
      std::fputs(
          fmt::format("{}; {}\n", RenderFastP(PlainFastP(verdicts_, options_.threshold, asked)),
                      RenderFastP(CertifiedFastP(verdicts_, options_.threshold, asked)))
              .c_str(),
          stdout);
    }
  }
  const std::vector<Verdict>& verdicts() const { return verdicts_; }

 private:
  using Json = nlohmann::ordered_json;

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
    if (asked_ == 1) {
      if (!verdicts_.empty())
        std::fputs((VerdictToJson(verdicts_.front(), 2) + "\n").c_str(), stdout);
      return;
    }
    std::string text = "[";
    for (const Verdict& verdict : verdicts_)
      text += (text.size() > 1 ? ",\n" : "") + VerdictToJson(verdict, 2);
    std::fputs((text + "]\n").c_str(), stdout);
  }

  const JudgeOptions& options_;
  size_t asked_;
  CardStyle style_;
  Progress progress_;
  std::vector<Verdict> verdicts_;
};

}  // namespace

int RunJudge(const JudgeOptions& options) {
  const std::atomic<bool>& interrupted = InstallInterruptHandler();
  auto request = MakeRequest(options);
  if (!request) return ReportError(request.error());
  HeedWeakSandboxFlag(options.allow_weak_sandbox);
  std::string notice;
  request->machine = LoadMachineProfile(&notice);
  if (!notice.empty()) std::fputs(fmt::format("assay: {}\n", notice).c_str(), stderr);
  JudgeOutput output(options, request->candidates.size());
  JudgeEvents events;
  events.stop = StopToken(interrupted);
  events.progress = [&](const std::string& stage, double fraction) {
    output.Progressed(stage, fraction);
  };
  events.verdict = [&](const Verdict& verdict) {
    if (!options.no_save) KeepVerdict(verdict);
    output.Judged(verdict);
  };
  const auto judged = JudgeCandidates(*request, events);
  std::vector<int> codes;
  for (const Verdict& verdict : output.verdicts()) codes.push_back(ExitCodeOf(verdict.outcome));
  if (!judged) codes.push_back(ExitCodeOf(UnlessInterrupted(judged.error()).kind));
  const int code = CombineExitCodes(codes);
  if (!output.verdicts().empty())
    if (const std::string text = GpuNotice(request->machine, output.verdicts().back());
        !text.empty())
      std::fputs(fmt::format("assay: {}\n", text).c_str(), stderr);
  output.Ended(code);
  if (!judged) ReportError(judged.error());
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    return ReportError({ErrorKind::kEnvironment,
                        "cannot write the verdict to stdout; it is saved for assay explain"});
  return code;
}

}  // namespace assay
