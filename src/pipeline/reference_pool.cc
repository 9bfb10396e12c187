#include "pipeline/reference_pool.h"

#include <algorithm>

#include "pipeline/machine.h"

namespace assay {

using wire::FrameKind;
using wire::Region;

HostResult<std::unique_ptr<LiveHost>> ReferencePool::Spawn(int pair_index) const {
  const auto environment = [](const Error& error) {
    return HostFailed(HostTrouble::Kind::kEnvironment, error.message);
  };
  PythonHostFiles files;
  files.problem_source = options_.problem.source;
  files.settings =
      HostSettings(options_.problem, options_.threads, options_.weights_seed, options_.baseline);
  auto request = PythonSandbox(options_.python, PythonRole::kReference, options_.threads, files);
  if (!request) return environment(request.error());
  const CorePlan cores = PlanCores(UsableCpus(), options_.threads, pair_index);
  HostOptions host_options;
  host_options.sandbox = std::move(*request);
  host_options.sandbox.cpus = cores.hosts;
  host_options.sandbox.limits.memory_bytes = TotalMemoryBytes();
  host_options.sandbox.limits.address_space_bytes = uint64_t{1} << 42;
  host_options.spin = cores.judge_has_own_core;
  auto outputs = live_.CreateOutputs();
  if (!outputs) return environment(outputs.error());
  auto host = Host::Spawn(std::move(host_options));
  if (!host) return std::unexpected(host.error());
  auto live_host = std::make_unique<LiveHost>(LiveHost{std::move(*host), std::move(*outputs), {}});
  live_host->host.set_interrupt(options_.interrupt);
  return live_host;
}

HostResult<void> ReferencePool::Finish(LiveHost& live_host) const {
  Host& host = live_host.host;
  const struct {
    Region region;
    const SharedRegion& memory;
    bool writable;
  } regions[] = {{Region::kPlan, live_.plan_region(), false},
                 {Region::kInputs, live_.inputs(), false},
                 {Region::kWeights, oracle_.weights(), false},
                 {Region::kOutputs, live_host.outputs, true}};
  if (auto done = host.Collect(300); !done) return std::unexpected(done.error());
  for (const auto& [region, memory, writable] : regions)
    if (auto done = host.Attach(region, memory, writable); !done)
      return std::unexpected(done.error());
  const uint64_t load_weights[] = {1};
  if (auto done = host.Request(FrameKind::kStoreWeights, load_weights, 120); !done)
    return std::unexpected(done.error());
  return {};
}

// Each step is done for all hosts before the next: they import PyTorch and load the problem at the
// same time.
HostResult<std::vector<ReferencePool::Entry>> ReferencePool::Start(int first_pair_index,
                                                                   int count) const {
  std::vector<Entry> entries;
  for (int index = first_pair_index; index < first_pair_index + count; ++index) {
    auto host = Spawn(index);
    if (!host) return std::unexpected(host.error());
    entries.push_back({std::move(*host), 0, index});
  }
  const uint64_t kBriefly[] = {1};  // the oracle has checked the problem
  for (Entry& entry : entries) {
    if (auto greeted = entry.host->host.Greet(); !greeted) return std::unexpected(greeted.error());
    if (auto posted = entry.host->host.Post(FrameKind::kLoad, kBriefly); !posted)
      return std::unexpected(posted.error());
  }
  for (Entry& entry : entries)
    if (auto done = Finish(*entry.host); !done) return std::unexpected(done.error());
  return entries;
}

HostResult<void> ReferencePool::StartUpTo(int count) {
  const int have = static_cast<int>(entries_.size());
  count = std::min(count, options_.hosts_max);
  if (count <= have) return {};
  auto started = Start(have, count - have);
  if (!started) return std::unexpected(started.error());
  for (Entry& entry : *started) entries_.push_back(std::move(entry));
  return {};
}

HostResult<LiveHost*> ReferencePool::Get(int pair_index) {
  if (auto started = StartUpTo(pair_index + 1); !started) return std::unexpected(started.error());
  Entry& entry = entries_[static_cast<size_t>(pair_index) % entries_.size()];
  if (entry.pair_index != pair_index && pair_index >= options_.hosts_max) {
    entry.host.reset();
    auto started = Start(pair_index, 1);
    if (!started) return std::unexpected(started.error());
    entry = std::move(started->front());
  }
  if (entry.slot_count != live_.plan().slot_count) {
    if (entry.slot_count != 0)
      if (auto left = entry.host->host.LeaveBlocks(60); !left) return std::unexpected(left.error());
    entry.slot_count = 0;
    if (auto entered = entry.host->host.EnterBlocks(120); !entered)
      return std::unexpected(entered.error());
    entry.slot_count = live_.plan().slot_count;
  }
  return entry.host.get();
}

}  // namespace assay
