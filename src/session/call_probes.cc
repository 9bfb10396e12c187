#include "session/call_probes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>
#include <vector>

#include "base/trace.h"
#include "hosts/freezer.h"
#include "hosts/host_tool.h"
#include "machine/perf_counters.h"
#include "machine/seeds.h"
#include "problem/suite.h"
#include "sides/candidate_hosts.h"
#include "values/oracle_host.h"
#include "values/work_account.h"

namespace assay {
namespace {

constexpr double kHalf = 0.5;
constexpr uint32_t kSlots = 4;
constexpr int kWarmCalls = 4;
constexpr double kBlockNs = 2e6;
// Blocks are added until so many had their cores to themselves.
constexpr size_t kQuietBlocks = 5, kBlocksMax = 25;
constexpr double kQuiet = 0.1;  // share of a block's time that its threads may wait for a core
constexpr const char* kDisturbed =
    "other processes held its calls up: look again on a quieter machine";
// Slower calls would take longer than they are worth.
constexpr double kSlowCallNs = 5e8;

// The values to measure on, and the host.
struct Place {
  CandidateHostSetup hosts;
  Oracle& oracle;
  LiveSlots& live;
  const DrawSet& draws;
};

struct Calls {
  double time_ns = 0;
  double minor_faults = 0, major_faults = 0;
  std::optional<CallCounts> counts;
  std::string no_counts;
};

// One block that counts, over again where the host was not asleep.
HostResult<BlockResult> RunBlock(const Place& place, LiveHost& host,
                                 std::span<const uint32_t> order) {
  while (true) {
    place.live.Poison(host.outputs);
    auto block = place.live.RunBlock(host.host, host.outputs, order, kToolStepTimeoutS);
    if (block || block.error().kind != HostTrouble::Kind::kVoid) return block;
  }
}

std::vector<uint32_t> OrderOf(size_t calls, uint32_t slots) {
  std::vector<uint32_t> order(calls);
  for (size_t i = 0; i < calls; ++i) order[i] = static_cast<uint32_t>(i) % slots;
  return order;
}

CallCounts CountsOf(const std::vector<double>& counted, double calls) {
  return {counted[0] / calls, counted[1] / calls, counted[2] / calls};
}

HostResult<Calls> Measure(const Place& place) {
  const uint32_t slots = std::min(kSlots, place.live.capacity());
  place.live.BeginCandidate();
  place.live.SetSlotCount(slots);
  place.live.Clear();
  CandidateHosts hosts(place.hosts);
  auto host = hosts.Take(0, 1);
  if (!host) return std::unexpected(host.error());
  const auto master = place.draws.Master(place.oracle, 0);
  if (!master) return std::unexpected(master.error());
  place.live.FillInputs(place.oracle, std::vector<uint32_t>(slots, *master));
  double call_ns = kBlockNs;
  for (uint32_t i = 0; i < kWarmCalls; ++i) {
    const uint32_t order[] = {i % slots};
    const auto block = RunBlock(place, *host, order);
    if (!block) return std::unexpected(block.error());
    call_ns = static_cast<double>(block->time_ns);
  }
  const auto calls = static_cast<size_t>(
      std::clamp(std::ceil(kBlockNs / std::max(call_ns, 1.0)), 1.0, double{wire::kCallsMax}));
  const std::vector<uint32_t> order = OrderOf(calls, slots);
  const auto counters = PerfCounters::Open(host->host.pid(), ProcessorEvents());
  const PageFaults before = ReadPageFaults(host->host.pid());
  std::vector<double> quiet;
  double all = 0;  // calls
  for (size_t i = 0; i < kBlocksMax && quiet.size() < kQuietBlocks; ++i) {
    const auto block = RunBlock(place, *host, order);
    if (!block) return std::unexpected(block.error());
    const auto time_ns = static_cast<double>(block->time_ns);
    all += static_cast<double>(calls);
    if (static_cast<double>(block->waited_ns) <= kQuiet * time_ns)
      quiet.push_back(time_ns / static_cast<double>(calls));
  }
  if (quiet.empty()) return HostFailed(HostTrouble::Kind::kEnvironment, kDisturbed);
  const PageFaults after = ReadPageFaults(host->host.pid());
  Calls measured;
  // Other processes make calls longer, never shorter.
  measured.time_ns = *std::min_element(quiet.begin(), quiet.end());
  measured.minor_faults = static_cast<double>(after.minor - before.minor) / all;
  measured.major_faults = static_cast<double>(after.major - before.major) / all;
  if (counters)
    measured.counts = CountsOf(counters->Read(), all);
  else
    measured.no_counts = counters.error().message;
  return measured;
}

// "ROWS = 32, COLUMNS = 64": those that differ.
std::string ChangedConstants(const std::map<std::string, std::string>& before,
                             const std::map<std::string, std::string>& after) {
  std::string text;
  for (const auto& [name, value] : after) {
    const auto was = before.find(name);
    if (was == before.end() || was->second != value)
      text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, value);
  }
  return text;
}

}  // namespace

std::string WhyNotLookedAt(CandidateForm form, const Verdict& verdict) {
  if (form != CandidateForm::kNative) return "it looks at native code on the processor alone";
  if (!IsCorrect(verdict.outcome)) return "it looks at correct candidates alone";
  if (!verdict.speed) return "gate 2 measured no speed: give it more time, or a smaller size";
  return {};
}

std::map<std::string, std::string> SetOfOptions(const std::string& options,
                                                std::map<std::string, std::string> set) {
  // A value that a shell would have to be told whole.
  if (options.find_first_of("'\"\\") != std::string::npos) return {};
  std::istringstream words(options);
  for (std::string word; words >> word;) {
    if (word == "--set") continue;
    auto setting = ParseSetting(word);
    if (!setting) return {};
    set.insert_or_assign(std::move(setting->first), std::move(setting->second));
  }
  return set;
}

Result<std::unique_ptr<OtherSize>> CallProbes::MakeSmaller(Workbench& bench) {
  const Span span("the problem at half the size");
  const std::string options = bench.oracle->SetForShare(kHalf);
  auto set = SetOfOptions(options, bench.terms.problem.set);
  if (options.empty() || set.empty()) return nullptr;
  ASSAY_ASSIGN_OR_RETURN(std::shared_ptr<Host> host, StartOracleHost(bench.oracle_options));
  const auto rule = [&bench](const Oracle&) -> Result<CompareRule> { return bench.rule; };
  return MakeOtherSize(bench.oracle_options, std::move(set), std::move(host), nullptr, rule,
                       FreshSeed(), false, [](size_t, size_t) {});
}

OtherSize* CallProbes::Smaller(Workbench& bench) {
  if (!std::exchange(asked_, true))
    if (auto made = MakeSmaller(bench)) smaller_ = std::move(*made);
  return smaller_.get();
}

void CallProbes::AddSmaller(const ToolSetup& setup, ProbeRecord* probe) {
  const Workbench& bench = setup.bench;
  OtherSize* smaller = Smaller(setup.bench);
  if (smaller == nullptr) return;
  const std::string settings =
      HostSettings(smaller->options.problem, bench.threads, smaller->options.weights_seed, "eager");
  const CandidateHostSetup hosts{setup.candidate, bench.terms.limits, bench.python,
                                 smaller->oracle, smaller->live,      settings,
                                 nullptr,         bench.threads,      bench.stop};
  const auto calls = Measure({hosts, smaller->oracle, smaller->live, smaller->draws});
  if (!calls) return;
  // By their signatures alone: what is known of one size may not be of the other.
  const double whole = WorkOf(bench.oracle->description(), {}).bytes;
  const double own = WorkOf(smaller->oracle.description(), {}).bytes;
  if (whole > 0)
    probe->smaller = {ChangedConstants(bench.terms.problem.set, smaller->options.problem.set), own,
                      own / whole, calls->time_ns};
}

Result<void> CallProbes::Add(const ToolSetup& setup, Verdict* verdict) {
  if (setup.bench.on_device()) return {};
  if (std::string why = WhyNotLookedAt(setup.candidate.source.form, *verdict); !why.empty()) {
    ProbeRecord& none = verdict->probe.emplace();
    none.threads = setup.bench.threads;
    none.failure = std::move(why);
    return {};
  }
  const Span span("probes");
  Workbench& bench = setup.bench;
  setup.progress("looking at calls");
  ProbeRecord& probe = verdict->probe.emplace();
  probe.threads = bench.threads;
  if (verdict->speed->baselines.at(verdict->speed->headline).candidate_time_ns > kSlowCallNs) {
    probe.failure = "its calls take over half a second: too long to look at several";
    return {};
  }
  const CandidateHostSetup whole = setup.schedule.SetupOf(
      setup.candidate, setup.schedule.QueuesFor(setup.candidate.source.content));
  const Place place{whole, *bench.oracle, *bench.live, setup.batch.draws};
  auto calls = Measure(place);
  if (calls) {
    probe.time_ns = calls->time_ns;
    probe.minor_faults = calls->minor_faults;
    probe.major_faults = calls->major_faults;
    probe.counts = calls->counts;
    probe.no_counts = std::move(calls->no_counts);
    AddSmaller(setup, &probe);
  } else {
    probe.failure = calls.error().message.substr(0, calls.error().message.find('\n'));
  }
  if (calls && bench.threads > 1) {
    const std::string settings =
        HostSettings(bench.terms.problem, 1, bench.oracle_options.weights_seed, "eager");
    const CandidateHostSetup hosts{setup.candidate, bench.terms.limits, bench.python, *bench.oracle,
                                   *bench.live,     settings,           nullptr,      1,
                                   bench.stop};
    if (const auto alone = Measure({hosts, *bench.oracle, *bench.live, setup.batch.draws}))
      probe.one_thread_ns = alone->time_ns;
  }
  if (bench.stop.stopped()) return Fail(ErrorKind::kInterrupted, "interrupted");
  return {};
}

}  // namespace assay
