#include "session/tool_facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/trace.h"
#include "hosts/host_tool.h"
#include "rules/bottleneck.h"
#include "toolchain/compute_sanitizer.h"
#include "toolchain/ncu.h"

namespace assay {
namespace {

using Kind = HostTrouble::Kind;

constexpr const char* kReport = "/tmp/assay-report.csv";
constexpr size_t kFailureBytesMax = 400;
// Warm calls of a process that is profiled: what is loaded when it is first needed is loaded.
constexpr int kWarmCalls = 3;

bool PassedCorrectness(const Verdict& verdict) {
  return verdict.correctness && verdict.correctness->passed && IsCorrect(verdict.outcome);
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

// One call of the candidate in a host under the tool, which then ends.
HostResult<HostLegacy> RunUnderTool(const ToolSetup& setup, const HostTool& tool) {
  LiveSlots& live = *setup.bench.live;
  Oracle& oracle = *setup.bench.oracle;
  live.BeginCandidate();
  live.SetSlotCount(std::min(2u, live.capacity()));
  live.Clear();
  CandidateHostSetup host_setup = setup.schedule.SetupOf(
      setup.candidate, setup.schedule.QueuesFor(setup.candidate.source.content));
  host_setup.tool = &tool;
  CandidateHosts hosts(host_setup);
  auto host = hosts.Take(0, 1);
  if (!host) return std::unexpected(host.error());
  const auto master = setup.batch.draws.Master(oracle, 0);
  if (!master) return std::unexpected(master.error());
  live.FillInputs(oracle, std::vector<uint32_t>(live.plan().slot_count, *master));
  // A profiler's report is of the last call alone.
  const int calls = tool.report.empty() ? 1 : kWarmCalls + 1;
  const uint32_t order[] = {0};
  for (int call = 1; call <= calls; ++call) {
    if (call == calls) host->host.Profile();
    auto ran = live.RunUncounted(host->host, host->outputs, order, kToolStepTimeoutS);
    if (!ran) return std::unexpected(ran.error());
  }
  if (auto left = host->host.LeaveBlocks(kToolStepTimeoutS); !left)
    return std::unexpected(left.error());
  return host->host.Quit(kToolStepTimeoutS);
}

// Each returns whether the tool's host was in trouble.
bool AddProfile(const ToolSetup& setup, Verdict* verdict) {
  const Span span("profile");
  ProfileRecord& profile = verdict->profile.emplace();
  if (!PassedCorrectness(*verdict)) {
    profile.failure = "not profiled: " + InWords(verdict->outcome);
    return false;
  }
  setup.progress("reading counters");
  const auto left = RunUnderTool(setup, NcuTool(*setup.bench.terms.tools.profiler));
  if (!left) {
    const std::string said = NcuTrouble(left.error().output);
    profile.failure = said.empty() ? FirstLine(left.error().message) : said;
    return true;
  }
  auto kernels = ReadNcuReport(left->artifact);
  if (!kernels) {
    profile.failure = kernels.error();
    return false;
  }
  profile.kernels = std::move(*kernels);
  verdict->bottleneck = BottleneckOf(*verdict, setup.bench.gpu()->facts().multiprocessors);
  return false;
}

bool AddSanitizer(const ToolSetup& setup, Verdict* verdict) {
  const Span span("sanitize");
  const SanitizerChoice& choice = *setup.bench.terms.tools.sanitizer;
  SanitizerRecord& record = verdict->sanitizer.emplace();
  record.tool = choice.tool;
  if (!PassedCorrectness(*verdict) && verdict->outcome != Outcome::kWrong &&
      verdict->outcome != Outcome::kCrashed) {
    record.failure = "not run: " + InWords(verdict->outcome);
    return false;
  }
  setup.progress(fmt::format("running {}", choice.tool));
  const auto left = RunUnderTool(setup, SanitizerTool(choice));
  // An access that is wrong ends the process, and what is printed of it is what was asked for.
  bool silent = false;
  record = ReadSanitizerOutput(choice.tool, left ? left->output : left.error().output, &silent);
  if (left) return false;
  if (silent) record.failure = FirstLine(left.error().message);
  return true;
}

}  // namespace

Result<void> CheckDevice(Workbench& bench, HostSchedule& schedule, const Verdict& verdict) {
  const bool trouble =
      verdict.outcome == Outcome::kCrashed || verdict.outcome == Outcome::kTimedOut ||
      verdict.outcome == Outcome::kOutOfMemory || verdict.outcome == Outcome::kFoul;
  if (!bench.on_device() || !trouble) return {};
  schedule.ending().Await();
  return bench.device->CheckAnswers(fmt::format("{} was ended", verdict.candidate.path));
}

Result<void> AddToolFacts(const ToolSetup& setup, Verdict* verdict) {
  Workbench& bench = setup.bench;
  const SessionTerms& terms = bench.terms;
  if (!terms.tools.profiler && !terms.tools.sanitizer) return {};
  setup.schedule.ending().Await();
  if (bench.live->MemoryHoldsFewHosts()) setup.schedule.EndWaitingHosts();
  // Nothing is learned from a device that does not answer, and who waited for it would fail.
  auto answers = CheckDevice(bench, setup.schedule, *verdict);
  const auto run = [&](auto add) {
    if (!answers || bench.stop.stopped()) return;
    if (add(setup, verdict))
      answers = bench.device->CheckAnswers(
          fmt::format("{} was looked at by a tool", verdict->candidate.path));
  };
  if (terms.tools.profiler) run(AddProfile);
  if (terms.tools.sanitizer) run(AddSanitizer);
  const std::string why = answers ? "interrupted" : "the device does not answer";
  if (terms.tools.profiler && !verdict->profile) verdict->profile = ProfileRecord{{}, why};
  if (terms.tools.sanitizer && !verdict->sanitizer)
    verdict->sanitizer = SanitizerRecord{terms.tools.sanitizer->tool, 0, {}, why};
  if (answers && bench.stop.stopped()) return Fail(ErrorKind::kInterrupted, "interrupted");
  return answers;
}

}  // namespace assay
