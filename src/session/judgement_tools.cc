// Tools that look at a candidate once its verdict is made: one more host of it, under the tool, for
// one call. What comes of it is facts beside the verdict; outcome and numbers stay as they are.
#include <fmt/format.h>

#include <algorithm>

#include "base/trace.h"
#include "hosts/host_tool.h"
#include "rules/bottleneck.h"
#include "session/judgement.h"
#include "toolchain/compute_sanitizer.h"
#include "toolchain/ncu.h"

namespace assay {
namespace {

using Kind = HostTrouble::Kind;

constexpr const char* kReport = "/tmp/assay-report.csv";
constexpr size_t kFailureBytesMax = 400;
// Warm calls of a process that is profiled: what is loaded when it is first needed is loaded.
constexpr int kWarmCalls = 3;

bool IsCorrect(const Verdict& verdict) {
  return verdict.correctness && verdict.correctness->passed &&
         (verdict.outcome == Outcome::kFaster || verdict.outcome == Outcome::kSlower ||
          verdict.outcome == Outcome::kTie || verdict.outcome == Outcome::kUnsettled);
}

std::string FirstLine(const std::string& text) {
  return text.substr(0, std::min(text.find('\n'), kFailureBytesMax));
}

std::string InWords(Outcome outcome) {
  std::string name(OutcomeName(outcome));
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

HostTool NcuTool(const GpuTool& program) {
  return {program,
          [program](const std::vector<std::string>& command) {
            return NcuCommand(program.path, kReport, command);
          },
          kReport};
}

HostTool SanitizerTool(const SanitizerChoice& choice) {
  return {choice.program,
          [choice](const std::vector<std::string>& command) {
            return SanitizerCommand(choice.program.path, choice.tool, command);
          },
          "",
          // Else tensors lie side by side in large pieces of PyTorch's, whose ends alone are seen.
          {{"PYTORCH_NO_CUDA_MEMORY_CACHING", "1"}}};
}

}  // namespace

HostResult<HostLegacy> Judgement::RunUnderTool(const BuiltCandidate& candidate,
                                               const HostTool& tool) {
  live_->BeginCandidate();
  live_->SetSlotCount(2);
  live_->Clear();
  CandidateHostSetup setup = HostSetup(candidate);
  setup.tool = &tool;
  CandidateHosts hosts(setup);
  auto host = hosts.Take(0, 1);
  if (!host) return std::unexpected(host.error());
  const auto master = draws_->Master(*oracle_, 0);
  if (!master) return std::unexpected(master.error());
  live_->FillInputs(*oracle_, std::vector<uint32_t>(2, *master));
  // A profiler's report is of the last call alone.
  const int calls = tool.report.empty() ? 1 : kWarmCalls + 1;
  const uint32_t order[] = {0};
  for (int call = 1; call <= calls; ++call) {
    if (call == calls) host->host.Profile();
    auto ran = live_->RunUncounted(host->host, host->outputs, order, kToolStepTimeoutS);
    if (!ran) return std::unexpected(ran.error());
  }
  if (auto left = host->host.LeaveBlocks(kToolStepTimeoutS); !left)
    return std::unexpected(left.error());
  return host->host.Quit(kToolStepTimeoutS);
}

void Judgement::AddProfile(const BuiltCandidate& candidate, Verdict* verdict) {
  const Span span("profile");
  ProfileRecord& profile = verdict->profile.emplace();
  if (!IsCorrect(*verdict)) {
    profile.failure = "not profiled: " + InWords(verdict->outcome);
    return;
  }
  Progress("reading counters", 0);
  const auto left = RunUnderTool(candidate, NcuTool(*request_.profiler));
  if (!left) {
    tool_trouble_ = true;
    const std::string said = NcuTrouble(left.error().output);
    profile.failure = said.empty() ? FirstLine(left.error().message) : said;
    return;
  }
  auto kernels = ReadNcuReport(left->artifact);
  if (!kernels) {
    profile.failure = kernels.error();
    return;
  }
  profile.kernels = std::move(*kernels);
  verdict->bottleneck = BottleneckOf(*verdict, gpu()->facts().multiprocessors);
}

void Judgement::AddSanitizer(const BuiltCandidate& candidate, Verdict* verdict) {
  const Span span("sanitize");
  const SanitizerChoice& choice = *request_.sanitizer;
  SanitizerRecord& record = verdict->sanitizer.emplace();
  record.tool = choice.tool;
  if (!IsCorrect(*verdict) && verdict->outcome != Outcome::kWrong &&
      verdict->outcome != Outcome::kCrashed) {
    record.failure = "not run: " + InWords(verdict->outcome);
    return;
  }
  Progress(fmt::format("running {}", choice.tool), 0);
  const auto left = RunUnderTool(candidate, SanitizerTool(choice));
  // An access that is wrong ends the process, and what is printed of it is what was asked for.
  record = ReadSanitizerOutput(choice.tool, left ? left->output : left.error().output);
  if (left) return;
  tool_trouble_ = true;
  if (record.failure == kNoSummary) record.failure = FirstLine(left.error().message);
}

Result<void> Judgement::AddToolFacts(size_t index, Verdict* verdict) {
  if (!request_.profiler && !request_.sanitizer) return {};
  ending_.Await();
  if (live_->MemoryHoldsFewHosts()) EndWaitingHosts();
  const BuiltCandidate& candidate = built_[index];
  // Nothing is learned from a device that does not answer, and who waited for it would fail.
  auto answers = CheckDevice(*verdict);
  const auto run = [&](auto add) {
    if (!answers || events_.stop.stopped()) return;
    tool_trouble_ = false;
    (this->*add)(candidate, verdict);
    if (tool_trouble_)
      answers =
          device_->CheckAnswers(fmt::format("{} was looked at by a tool", verdict->candidate.path));
  };
  if (request_.profiler) run(&Judgement::AddProfile);
  if (request_.sanitizer) run(&Judgement::AddSanitizer);
  if (request_.profiler && !verdict->profile)
    verdict->profile = ProfileRecord{{}, answers ? "interrupted" : "the device does not answer"};
  if (request_.sanitizer && !verdict->sanitizer)
    verdict->sanitizer = SanitizerRecord{
        request_.sanitizer->tool, 0, {}, answers ? "interrupted" : "the device does not answer"};
  if (answers && events_.stop.stopped()) return Fail(ErrorKind::kInterrupted, "interrupted");
  return answers;
}

}  // namespace assay
