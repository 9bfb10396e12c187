#include "sides/candidate_hosts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/clock.h"
#include "base/defences.h"
#include "base/files.h"
#include "base/trace.h"
#include "hosts/host_tool.h"
#include "machine/machine.h"
#include "sides/host_starts.h"
#include "values/left_results.h"

namespace assay {

using Kind = HostTrouble::Kind;
using wire::FrameKind;
using wire::Region;

namespace {

// Python hosts of a candidate that start at the same time; each holds PyTorch.
// Hosts start ahead of their need where this share of the free memory holds one.
constexpr uint64_t kMemoryShare = 8;
// CPU time that waking and stopping take at most, by one look at honest hosts of each form.
constexpr int64_t kNativeWakeNs = 80'000, kInterpreterWakeNs = 200'000;
// What a candidate's host may take to prepare its slots.
constexpr double kEnterS = 60;

std::unexpected<HostTrouble> Environment(const Error& error) {
  return HostFailed(Kind::kEnvironment, error.message);
}

// From kLoad on foreign code may write any frame. A failure that would be the machine's or the
// problem's ends the whole call without a verdict, so it is not a candidate's to claim: its host
// gave up, which is a crash.
HostTrouble AsTheCandidates(HostTrouble trouble, bool python) {
  if (trouble.kind != Kind::kFailed) return trouble;
  if (trouble.message.find_first_not_of(" \t\n") == std::string::npos)
    trouble.message = "it could not be loaded, and its process did not say why";
  // Python alone imports what may not be here.
  const wire::Failure last =
      python ? wire::Failure::kCandidateNotHere : wire::Failure::kCandidateOutput;
  if (trouble.failure < wire::Failure::kCandidateLoad || trouble.failure > last) {
    trouble.kind = Kind::kDied;
    trouble.message = "its process gave up: " + trouble.message;
  }
  return trouble;
}

// glibc fills what it hands out with the byte 0x7f: large numbers in every type.
void PoisonHeap(SandboxRequest* request) { request->environment["MALLOC_PERTURB_"] = "128"; }

HostResult<HostOptions> CandidateHostOptions(const CandidateHostSetup& setup, int pair_index) {
  HostOptions options;
  bool forks = false;
  if (setup.candidate.source.form == CandidateForm::kPython) {
    PythonHostFiles files;
    files.settings = setup.settings;
    files.candidate_source = setup.candidate.source.content;
    files.init_arguments = setup.oracle.init_arguments();
    files.extensions = setup.candidate.artifact;
    auto request = PythonSandbox(setup.python, PythonRole::kCandidate, setup.threads, files);
    if (!request) return Environment(request.error());
    options.sandbox = std::move(*request);
    options.lockdown = Stands(Defence::kLockdown) ? LockdownProgram(false) : "";
    forks = true;
  } else {
    auto support = SupportFolder();
    if (!support) return Environment(support.error());
    auto binary = ReadFile(std::filesystem::path(*support) / "native_host", 64 << 20);
    if (!binary) return Environment(binary.error());
    options.sandbox.arguments = {"/assay/native_host"};
    options.sandbox.environment = HostEnvironment(setup.threads);
    options.sandbox.files = {{"/assay/native_host", std::move(*binary), true}};
    // The device form brings no code that this process would run.
    const bool foreign = setup.candidate.source.form != CandidateForm::kDevice;
    if (foreign)
      options.sandbox.files.push_back({"/candidate/kernel.so", setup.candidate.artifact, true});
    options.lockdown = foreign && Stands(Defence::kLockdown) ? LockdownProgram(true) : "";
  }
  if (setup.poison_heap) PoisonHeap(&options.sandbox);
  if (!Stands(Defence::kLockdown)) options.sandbox.may_start_processes = true;
  if (setup.gpu != nullptr) AllowDevice(*setup.gpu, &options.sandbox, setup.queues);
  if (setup.gpu != nullptr) ShowToolkit(*setup.gpu, setup.candidate.toolkit, &options.sandbox);
  options.on_device = setup.gpu != nullptr;
  const CorePlan cores = PlanCores(MeasuringCpus(), setup.threads, pair_index);
  options.sandbox.cpus = StartingCpus(cores.hosts);
  options.spin = cores.judge_has_own_core;
  if (cores.hosts.size() == 1 && setup.gpu == nullptr)
    options.wake_allowance_ns =
        setup.candidate.source.form == CandidateForm::kPython ? kInterpreterWakeNs : kNativeWakeNs;
  options.sandbox.limits.memory_bytes = setup.limits.memory_bytes;
  options.sandbox.limits.processes = ProcessesFor(setup.threads);
  options.sandbox.limits.cpu_seconds *= setup.threads;
  if (setup.tool != nullptr)
    PutUnderTool(*setup.tool, &options);
  else if (forks && setup.forks)
    options.nursery = NurseryFor("candidate", pair_index, setup.python);
  return options;
}

}  // namespace

Result<void> StartCandidateNurseries(const PythonRuntime& python, const Gpu& gpu, int threads,
                                     bool poison_heap, PairRange pairs) {
  ASSAY_ASSIGN_OR_RETURN(SandboxRequest request,
                         PythonSandbox(python, PythonRole::kCandidate, threads, {}));
  if (poison_heap) PoisonHeap(&request);
  AllowDevice(gpu, &request, DeviceQueues::kByDefault);
  for (int pair = pairs.first; pair < pairs.end; ++pair)
    if (const auto nursery = NurseryFor("candidate", pair, python))
      StartNurseryAhead(*nursery, request);
  return {};
}

HostResult<LiveHost> CandidateHosts::Spawn(int pair_index) const {
  const Span span("spawn a candidate's host");
  auto options = CandidateHostOptions(setup_, pair_index);
  if (!options) return std::unexpected(options.error());
  SandboxLimits& limits = options->sandbox.limits;
  limits.memory_bytes += TensorBytes(setup_.oracle.plan(), wire::Role::kParameter);
  HostOutputs outputs;
  // A device's memory is taken once it loads: it may wait for long.
  if (setup_.gpu == nullptr) {
    auto created = setup_.live.CreateOutputs();
    if (!created) return Environment(created.error());
    outputs = std::move(*created);
    const uint64_t outputs_bytes = outputs.memory.size_bytes();
    // Slots are the judge's, but count for the process that touches them first.
    const uint64_t slots = setup_.live.shared_bytes() + outputs_bytes;
    limits.memory_bytes += slots;
    // A block's results may stay with it.
    if (IsPython()) limits.memory_bytes += outputs_bytes;
    limits.address_space_bytes = 2 * limits.memory_bytes + (uint64_t{1} << 30);
    if (IsPython()) limits.address_space_bytes += uint64_t{16} << 30;
  }
  auto host = Host::Spawn(std::move(*options));
  if (!host) return std::unexpected(host.error());
  host->set_stop(setup_.stop);
  return LiveHost{std::move(*host), std::move(outputs), {}};
}

double CandidateHosts::LoadTimeoutS() const {
  if (setup_.tool != nullptr) return kToolStepTimeoutS;
  if (!IsPython()) return setup_.limits.call_timeout_s;
  return BuildTimeoutS(setup_.candidate.source, setup_.limits, setup_.gpu != nullptr);
}

HostResult<wire::Frame> CandidateHosts::CollectLoad(Host& host) const {
  auto loaded = host.Collect(LoadTimeoutS());
  if (loaded) return loaded;
  HostTrouble trouble = AsTheCandidates(std::move(loaded).error(), IsPython());
  if (trouble.kind == Kind::kTimedOut)
    trouble.message = fmt::format("loading it took longer than {:.3g} s ({})", LoadTimeoutS(),
                                  IsPython() ? "--build-timeout" : "--timeout");
  return std::unexpected(std::move(trouble));
}

HostResult<void> CandidateHosts::LoadRest(size_t count) {
  if (!IsPython()) return {};
  const Span span("await constructions");
  HostResult<void> constructed;
  const auto await = [&] {
    for (size_t i = 0; i < count && constructed; ++i)
      if (auto done = CollectLoad(begun_[i].host.host); !done)
        constructed = std::unexpected(std::move(done).error());
  };
  if (!setup_.candidate.without_device)
    await();
  else if (auto off = ImportOffDevice(setup_.gpu, setup_.stop, await); !off)
    return off;
  for (size_t i = 0; i < count && constructed; ++i)
    constructed = begun_[i].host.host.Post(FrameKind::kLoad, {});
  return constructed;
}

HostResult<void> CandidateHosts::Finish(LiveHost& started) const {
  const Span span("await its load");
  const bool python = IsPython();
  auto loaded = CollectLoad(started.host);
  if (!loaded) return std::unexpected(std::move(loaded).error());
  if (python) started.weights = ReadWeightsMatch(loaded->args, setup_.live.plan());
  return Stands(Defence::kWaitingHosts) ? started.host.Sleep() : HostResult<void>{};
}

namespace {

// Before kLoad nothing of the candidate is in its host: what goes wrong is the machine's.
HostResult<void> AsTheMachines(HostResult<void> done) {
  if (!done && (done.error().kind == Kind::kDied || done.error().kind == Kind::kTimedOut)) {
    done.error().kind = Kind::kEnvironment;
    done.error().message = "no host could be started for a candidate: " + done.error().message;
  }
  return done;
}

}  // namespace

HostResult<void> CandidateHosts::AttachImage(Host& host) const {
  const struct {
    Region region;
    const std::string& content;
  } parts[] = {{Region::kImage, setup_.candidate.artifact},
               {Region::kLaunches, setup_.candidate.launches}};
  for (const auto& [region, content] : parts) {
    auto memory = SharedRegion::Create("assay-image", content.size());
    if (!memory) return Environment(memory.error());
    std::memcpy(memory->data(), content.data(), content.size());
    if (auto done = host.Attach(region, *memory, false); !done) return done;
  }
  return {};
}

HostResult<void> CandidateHosts::Load(Begun& begun) const {
  const Span span("attach, and have it load");
  Host& host = begun.host.host;
  if (!begun.greeted)
    if (auto greeted = AsTheMachines(host.Greet()); !greeted) return greeted;
  begun.host.may_be_read = MayReadMemory(host.pid());
  if (setup_.gpu != nullptr) {
    auto outputs = setup_.live.CreateOutputs();
    if (!outputs) return Environment(outputs.error());
    begun.host.outputs = std::move(*outputs);
  }
  const bool inputs_writable = !Stands(Defence::kReadOnlyInputs);
  auto attached = AsTheMachines(setup_.live.Attach(host, begun.host.outputs, inputs_writable));
  if (attached && IsPython() && Stands(Defence::kLeftResults))
    attached = AsTheMachines(setup_.live.AttachResults(host, &begun.host.outputs));
  if (!attached) return attached;
  if (setup_.candidate.source.form == CandidateForm::kDevice)
    if (auto shared = AsTheMachines(AttachImage(host)); !shared) return shared;
  if (!IsPython()) return host.Post(FrameKind::kLoad, {});
  return host.Post(FrameKind::kLoad, kConstructAlone);
}

int CandidateHosts::SideBySide(int wanted, bool ahead) const {
  const LiveSlots::Starting hosts{.trusted = false, .leaves = IsPython(), .ahead = ahead};
  return std::min(setup_.live.HostsAtATime(wanted, hosts), kSideBySideMax);
}

void CandidateHosts::Prefetch(int first_pair_index, int count, bool imports_only) {
  if (!StartsSlowly() || !begun_.empty() || !ready_.empty()) return;
  if (imports_only && !IsPython()) return;
  if (AvailableMemoryBytes() / kMemoryShare < kPythonHostBytes) return;
  begun_ns_ = MonotonicNs();
  const int end =
      first_pair_index + (imports_only ? std::min(count, kSideBySideMax) : SideBySide(count, true));
  for (int index = first_pair_index; index < end; ++index) {
    auto host = Spawn(index);
    if (!host) return;  // Take() tries again, and says why
    begun_.push_back({std::move(*host)});
  }
}

void CandidateHosts::AwaitImports() {
  GreetAll();
  std::erase_if(begun_, [](const Begun& begun) { return !begun.greeted; });
}

// One that fails to greet fails again as it loads, and is told then.
void CandidateHosts::GreetAll() {
  for (Begun& begun : begun_)
    if (!begun.greeted) begun.greeted = begun.host.host.Greet().has_value();
}

void CandidateHosts::Drop() {
  begun_.clear();
  ready_.clear();
}

double CandidateHosts::BegunForS() const {
  return begun_.empty() ? 0 : static_cast<double>(MonotonicNs() - begun_ns_) / 1e9;
}

std::vector<Host*> CandidateHosts::Imported(size_t most) {
  std::vector<Host*> hosts;
  if (!IsPython() || setup_.gpu == nullptr) return hosts;
  for (size_t i = 0; i < std::min(most, begun_.size()); ++i) {
    Begun& begun = begun_[i];
    if (!begun.greeted || begun.device_starts) continue;
    begun.device_starts = true;
    hosts.push_back(&begun.host.host);
  }
  return hosts;
}

void CandidateHosts::Prepare(int pair_index, int pairs_coming) {
  if (ready_.empty() && StartsSlowly() && !StartBatch(pair_index, SideBySide(pairs_coming, false)))
    Drop();
}

// Each step is done for all hosts before the next: they import PyTorch and load the candidate at
// the same time.
HostResult<void> CandidateHosts::StartBatch(int first_pair_index, int count) {
  // Those that began and do not fit now end: they would import PyTorch beside a measurement, or
  // take a device's memory. Others wait.
  while (std::ssize(begun_) > count && (!begun_.back().greeted || begun_.back().device_starts))
    begun_.pop_back();
  const auto of_batch = static_cast<size_t>(count);
  for (int index = first_pair_index + static_cast<int>(begun_.size());
       index < first_pair_index + count; ++index) {
    auto host = Spawn(index);
    if (!host) return std::unexpected(host.error());
    begun_.push_back({std::move(*host)});
  }
  const uint64_t libraries = LibrariesOf(setup_.oracle.account());
  const bool imports =
      std::any_of(begun_.begin(), begun_.end(), [](const Begun& begun) { return !begun.greeted; });
  if (imports && setup_.gpu != nullptr && IsPython())
    if (auto imported = ImportOffDevice(setup_.gpu, setup_.stop,
                                        [&] {
                                          GreetAll();
                                          StartDevices(Imported(of_batch), libraries);
                                        });
        !imported)
      return imported;
  StartDevices(Imported(of_batch), libraries);
  for (size_t i = 0; i < of_batch; ++i) {
    auto posted = Load(begun_[i]);
    if (!posted && setup_.gpu != nullptr) {
      // It may have begun while an earlier candidate had all of the device's memory.
      const auto at = begun_.erase(begun_.begin() + static_cast<std::ptrdiff_t>(i));
      auto host = Spawn(first_pair_index + static_cast<int>(i));
      if (!host) return std::unexpected(host.error());
      posted = Load(*begun_.insert(at, {std::move(*host)}));
    }
    if (!posted) return posted;
  }
  if (auto rest = LoadRest(of_batch); !rest) return rest;
  for (size_t i = 0; i < of_batch; ++i, begun_.pop_front()) {
    if (auto done = Finish(begun_.front().host); !done) return done;
    ready_.push_back(std::move(begun_.front().host));
  }
  return {};
}

HostResult<LiveHost> CandidateHosts::Take(int pair_index, int pairs_coming) {
  const Span span("take a candidate's host");
  if (ready_.empty()) {
    const int count = StartsSlowly() ? SideBySide(pairs_coming, false) : 1;
    if (auto started = StartBatch(pair_index, count); !started) {
      setup_.live.NoteTrouble();
      Drop();
      return std::unexpected(started.error());
    }
  }
  LiveHost host = std::move(ready_.front());
  ready_.pop_front();
  const int64_t begin_ns = MonotonicNs();
  if (auto entered = EnterBlocks(host, setup_.live, kEnterS); !entered)
    return std::unexpected(entered.error());
  enter_s_ = static_cast<double>(MonotonicNs() - begin_ns) / 1e9;
  return host;
}

}  // namespace assay
