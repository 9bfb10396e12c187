#include "sides/reference_pool.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/clock.h"
#include "base/trace.h"
#include "machine/machine.h"
#include "rules/gate2.h"
#include "sides/host_starts.h"
#include "values/left_results.h"

namespace assay {

using wire::FrameKind;

namespace {

std::unexpected<HostTrouble> Environment(const Error& error) {
  return HostFailed(HostTrouble::Kind::kEnvironment, error.message);
}

// What kLoad says of the weights (candidate.py).
constexpr uint64_t kByName = 0, kNoWeights = 3;
// The most time for each part of a load, and for preparing slots [s].
constexpr double kLoadS = 300, kEnterS = 120;

}  // namespace

int ReferencePool::WarmHostsMax() {
  const auto affordable = static_cast<int>(AvailableMemoryBytes() / 5 / kPythonHostBytes);
  return std::clamp(affordable, Looks()[0].pairs, Looks()[1].pairs);
}

ReferencePool::~ReferencePool() {
  // Each entry waits for its host's end, and taking a context down takes long.
  for (Entry& entry : entries_)
    if (entry.host) entry.host->host.Kill();
}

void ReferencePool::Meet(const Oracle& oracle, const LiveSlots& live) {
  oracle_ = &oracle;
  live_ = &live;
  if (!on_the_candidates_way_ || !oracle.init_arguments().empty()) return;
  on_the_candidates_way_ = false;
  for (Entry& entry : entries_) entry = {};
}

// The first pairs take whatever warm host an earlier candidate left there.
bool ReferencePool::Serves(int pair_index) {
  const Entry& entry = At(pair_index);
  return entry.host && (pair_index < options_.hosts_max || entry.pair_index == pair_index);
}

Result<void> ReferencePool::StartNurseries(int first_pair_index, int end_pair_index) const {
  ASSAY_ASSIGN_OR_RETURN(
      SandboxRequest request,
      PythonSandbox(options_.python, PythonRole::kOpponent, options_.threads, {}));
  AllowDevice(*options_.gpu, &request, options_.queues);
  for (int pair = first_pair_index; pair < end_pair_index; ++pair)
    if (const auto nursery = NurseryFor("opponent", pair, options_.python))
      StartNurseryAhead(*nursery, request);
  return {};
}

HostResult<void> ReferencePool::Spawn(int pair_index) {
  PythonHostFiles files;
  files.problem_source = options_.problem.source;
  files.settings =
      HostSettings(options_.problem, options_.threads, options_.weights_seed, options_.baseline);
  const PythonRole role = on_the_candidates_way_ ? PythonRole::kOpponent : PythonRole::kReference;
  auto request = PythonSandbox(options_.python, role, options_.threads, files);
  if (!request) return Environment(request.error());
  const CorePlan cores = PlanCores(MeasuringCpus(), options_.threads, pair_index);
  HostOptions host_options;
  host_options.sandbox = std::move(*request);
  host_options.sandbox.cpus = StartingCpus(cores.hosts);
  host_options.sandbox.limits.memory_bytes = TotalMemoryBytes();
  host_options.sandbox.limits.address_space_bytes = uint64_t{1} << 42;
  host_options.sandbox.limits.cpu_seconds = kTrustedCpuSeconds;
  if (options_.gpu != nullptr) AllowDevice(*options_.gpu, &host_options.sandbox, options_.queues);
  // What torch.compile makes is Triton's, which looks for the driver.
  if (options_.gpu != nullptr && options_.baseline != "eager")
    ShowToolkit(*options_.gpu, "", &host_options.sandbox);
  host_options.on_device = options_.gpu != nullptr;
  host_options.spin = cores.judge_has_own_core;
  if (options_.forks) host_options.nursery = NurseryFor("opponent", pair_index, options_.python);
  auto host = Host::Spawn(std::move(host_options));
  if (!host) return std::unexpected(host.error());
  auto live_host = std::make_unique<LiveHost>(LiveHost{std::move(*host), {}, {}});
  live_host->host.set_stop(options_.stop);
  At(pair_index) = {std::move(live_host), false, false, false, pair_index};
  return {};
}

HostResult<void> ReferencePool::Attach(LiveHost& live_host) const {
  return live_->Attach(live_host.host, live_host.outputs, false);
}

void ReferencePool::AwaitImports() {
  for (Entry& entry : entries_) {
    if (!entry.host || entry.greeted) continue;
    entry.greeted = entry.host->host.Greet().has_value();
    if (!entry.greeted) entry = {};
  }
}

// One that fails to greet fails again as it loads, and is told then.
void ReferencePool::GreetAll(const std::vector<Entry*>& entries) {
  for (Entry* entry : entries)
    if (!entry->greeted) entry->greeted = entry->host->host.Greet().has_value();
}

std::vector<Host*> ReferencePool::Imported() {
  std::vector<Entry*> all;
  for (Entry& entry : entries_) all.push_back(&entry);
  return Imported(all);
}

std::vector<Host*> ReferencePool::Imported(const std::vector<Entry*>& entries) {
  std::vector<Host*> hosts;
  for (Entry* entry : entries) {
    if (!Waits(*entry)) continue;
    entry->device_starts = true;
    hosts.push_back(&entry->host->host);
  }
  return hosts;
}

bool ReferencePool::Waits(const Entry& entry) {
  return entry.host && entry.greeted && !entry.device_starts && !entry.loaded;
}

void ReferencePool::Prepare(int pair_index, int pairs_coming, bool leaves) {
  const int count = AtATime(pairs_coming, false, leaves);
  for (int index = pair_index; index < pair_index + count; ++index) {
    if (HasLoaded(index)) continue;
    [[maybe_unused]] auto loaded = Load(pair_index, count);
    return;
  }
}

HostResult<void> ReferencePool::BeginLoading(Entry& entry) const {
  LiveHost& live_host = *entry.host;
  if (!entry.greeted)
    if (auto greeted = live_host.host.Greet(); !greeted) return greeted;
  live_host.may_be_read = MayReadMemory(live_host.host.pid());
  auto outputs = live_->CreateTrustedOutputs();
  if (!outputs) return Environment(outputs.error());
  live_host.outputs = std::move(*outputs);
  if (on_the_candidates_way_) {
    if (auto attached = Attach(live_host); !attached) return attached;
    return PostLoad(live_host);
  }
  const uint64_t kBriefly[] = {1};  // the oracle has checked the problem
  return live_host.host.Post(FrameKind::kLoad, kBriefly);
}

// Its process may be older than the construction record, which it gets now.
HostResult<void> ReferencePool::PostLoad(LiveHost& live_host) const {
  const std::string& record = oracle_->init_arguments();
  auto memory = SharedRegion::Create("assay-record", record.size());
  if (!memory) return Environment(memory.error());
  std::memcpy(memory->data(), record.data(), record.size());
  return live_host.host.Post(FrameKind::kLoad, kConstructAlone, memory->fd());
}

HostResult<std::vector<HostResult<void>>> ReferencePool::LoadRest(
    const std::vector<Entry*>& entries) const {
  std::vector<HostResult<void>> posted(entries.size());
  if (!on_the_candidates_way_) return posted;
  auto off = ImportOffDevice(options_.gpu, options_.stop, [&] {
    for (size_t i = 0; i < entries.size(); ++i)
      if (auto constructed = entries[i]->host->host.Collect(kLoadS); !constructed)
        posted[i] = std::unexpected(constructed.error());
  });
  if (!off) return std::unexpected(off.error());
  for (size_t i = 0; i < entries.size(); ++i)
    if (posted[i]) posted[i] = entries[i]->host->host.Post(FrameKind::kLoad, {});
  return posted;
}

// It began to start beside builds, one of which may have had all of the device's memory.
HostResult<void> ReferencePool::BeginOrRestart(Entry& entry) {
  auto begun = BeginLoading(entry);
  if (begun || options_.gpu == nullptr) return begun;
  const int pair_index = entry.pair_index;
  entry = {};
  if (auto spawned = Spawn(pair_index); !spawned) return spawned;
  return BeginLoading(entry);
}

HostResult<void> ReferencePool::Finish(LiveHost& live_host) const {
  auto loaded = live_host.host.Collect(kLoadS);
  if (!loaded) return std::unexpected(loaded.error());
  if (on_the_candidates_way_) {
    const bool matched = loaded->args[0] == kByName || loaded->args[0] == kNoWeights;
    if (matched) return {};
    HostTrouble trouble;
    trouble.kind = HostTrouble::Kind::kFailed;
    trouble.failure = wire::Failure::kProblemLoad;
    trouble.message = "its weights are not those that were described";
    return std::unexpected(trouble);
  }
  if (auto attached = Attach(live_host); !attached) return attached;
  const uint64_t load_weights[] = {1};
  if (auto done = live_host.host.Request(FrameKind::kStoreWeights, load_weights, 120); !done)
    return std::unexpected(done.error());
  return {};
}

HostResult<void> ReferencePool::Prefetch(int first_pair_index, int count, bool leaves,
                                         bool imports_only) {
  MakeRoom(first_pair_index);
  const int end = first_pair_index + (imports_only ? std::min(count, options_.hosts_max)
                                                   : AtATime(count, true, leaves));
  for (int index = first_pair_index; index < end; ++index)
    if (!Serves(index))
      if (auto spawned = Spawn(index); !spawned) return spawned;
  return {};
}

// The hosts of pairs just run go first, and those of the first pairs, which the next candidate
// needs most, last.
void ReferencePool::MakeRoom(int pair_index) {
  if (live_ == nullptr) return;
  const auto size = static_cast<int>(entries_.size());
  for (int back = 1; back < size && live_->MemoryIsShort(); ++back)
    if (Entry& entry = At(pair_index - back + size); entry.loaded) entry = {};
}

void ReferencePool::KeepOnly(int pair_index) {
  for (Entry& entry : entries_)
    if (&entry != &At(pair_index) && !Waits(entry)) entry = {};
}

int ReferencePool::AtATime(int wanted, bool ahead, bool leaves) const {
  const LiveSlots::Starting hosts{.trusted = true, .leaves = leaves, .ahead = ahead};
  if (live_ != nullptr) wanted = live_->HostsAtATime(wanted, hosts);
  return std::clamp(wanted, 1, options_.hosts_max);
}

// Each step is done for all hosts before the next: they import PyTorch and load the problem at the
// same time.
HostResult<void> ReferencePool::Load(int first_pair_index, int count) {
  const Span span("load opponents");
  std::vector<Entry*> started;
  for (int index = first_pair_index; index < first_pair_index + count; ++index) {
    Entry& entry = At(index);
    if (!Serves(index)) {
      entry = {};
      if (auto spawned = Spawn(index); !spawned) return spawned;
    }
    if (!entry.loaded) started.push_back(&entry);
  }
  if (options_.gpu != nullptr) {
    const uint64_t libraries = LibrariesOf(oracle_->account());
    const bool imports = std::any_of(started.begin(), started.end(),
                                     [](const Entry* entry) { return !entry->greeted; });
    if (imports)
      if (auto imported = ImportOffDevice(options_.gpu, options_.stop,
                                          [&] {
                                            GreetAll(started);
                                            StartDevices(Imported(started), libraries);
                                          });
          !imported)
        return imported;
    StartDevices(Imported(started), libraries);
  }
  for (Entry* entry : started)
    if (auto begun = BeginOrRestart(*entry); !begun) return begun;
  const auto posted = LoadRest(started);
  if (!posted) return std::unexpected(posted.error());
  for (size_t i = 0; i < started.size(); ++i) {
    Entry* const entry = started[i];
    auto done = (*posted)[i] ? Finish(*entry->host) : (*posted)[i];
    if (!done && on_the_candidates_way_ && done.error().kind == HostTrouble::Kind::kFailed &&
        done.error().failure != wire::Failure::kEnvironment) {
      on_the_candidates_way_ = false;
      for (Entry& each : entries_)
        if (!each.loaded) each = {};
      return Load(first_pair_index, count);
    }
    if (!done) return done;
    entry->loaded = true;
  }
  return {};
}

int ReferencePool::size() const {
  return static_cast<int>(
      std::count_if(entries_.begin(), entries_.end(), [](const Entry& e) { return e.loaded; }));
}

// It may be in blocks, beside an earlier candidate that took its results out of slots.
HostResult<void> ReferencePool::LendResults(LiveHost& live_host) const {
  if (!live_->on_device() || live_host.outputs.results.size_bytes() > 0) return {};
  if (live_host.slot_count != 0)
    if (auto left = live_host.host.LeaveBlocks(kEnterS); !left) return left;
  live_host.slot_count = 0;
  return live_->AttachResults(live_host.host, &live_host.outputs);
}

HostResult<LiveHost*> ReferencePool::Get(int pair_index, int pairs_coming, bool leaves) {
  const Span span("get an opponent");
  ASSAY_CHECK(oracle_ != nullptr);
  MakeRoom(pair_index);
  Entry& entry = At(pair_index);
  const int count = AtATime(pairs_coming, false, leaves);
  bool there = Serves(pair_index) && entry.loaded;
  // Of those that began all that fit are loaded, and the others end: none is to import PyTorch
  // beside a measurement.
  for (int index = pair_index; index < pair_index + options_.hosts_max; ++index) {
    Entry& begun = At(index);
    if (!begun.host || begun.loaded) continue;
    if (index < pair_index + count)
      there = false;
    else if (!Waits(begun))
      begun = {};
  }
  if (!there)
    if (auto loaded = Load(pair_index, count); !loaded) return std::unexpected(loaded.error());
  // No other pair of this verdict gets it.
  entry.pair_index = pair_index;
  if (leaves)
    if (auto lent = LendResults(*entry.host); !lent) return std::unexpected(lent.error());
  const int64_t begin_ns = MonotonicNs();
  if (auto entered = EnterBlocks(*entry.host, *live_, kEnterS); !entered)
    return std::unexpected(entered.error());
  enter_s_ = static_cast<double>(MonotonicNs() - begin_ns) / 1e9;
  return entry.host.get();
}

}  // namespace assay
