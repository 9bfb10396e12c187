#include "cli/pilot_command.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/version.h"
#include "cli/exit_code.h"
#include "cli/places.h"
#include "cluster/pilot.h"
#include "doctor/doctor.h"
#include "gpu/gpu.h"
#include "machine/machine.h"
#include "queue/open_queue.h"
#include "report/terminal.h"
#include "report/text.h"

namespace assay {
namespace {

constexpr double kBeatMostS = 10, kBeatsALease = 5;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string NodeName() {
  if (const std::string node = Variable("SLURMD_NODENAME"); !node.empty()) return node;
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return host[0] == '\0' ? "node" : host.data();
}

// As squeue names it: "12_3" of an array, or "12".
std::string SlurmJob() {
  const std::string array = Variable("SLURM_ARRAY_JOB_ID");
  return array.empty() ? Variable("SLURM_JOB_ID") : array + "_" + Variable("SLURM_ARRAY_TASK_ID");
}

std::string ModelOf(const WorkerPlace& place) {
  if (place.device == "cpu") return DescribeMachine().cpu;
  const std::vector<std::string> gpus = GpuNames();
  const size_t index = place.visible_gpu.empty() ? 0 : std::stoul(place.visible_gpu);
  return index < gpus.size() ? gpus[index] : "a GPU";
}

// The rates by which nodes of one class are compared, as JSON.
std::string MeasuresOf(const MachineProfile& profile, const WorkerPlace& place,
                       const std::string& model) {
  nlohmann::ordered_json measures = nlohmann::ordered_json::object();
  const auto add = [&](const char* name, double value) {
    if (value > 0) measures[name] = value;
  };
  if (place.device == "cpu" && !profile.ceilings.empty()) {
    const Ceilings& all = profile.ceilings.back();
    add("memory bandwidth [bytes/s]", all.read_bytes_s);
    double best = 0;
    for (const auto& [set, rate] : all.float32_operations_s) best = std::max(best, rate);
    add("float32 rate [operations/s]", best);
  }
  for (const GpuCeilings& gpu : profile.gpus) {
    if (place.device == "cpu" || gpu.name != model) continue;
    add("memory bandwidth [bytes/s]", BestRate(gpu.traffic, "read"));
    add("float32 rate [operations/s]", BestRate(gpu.arithmetic, "float32"));
  }
  if (!profile.noise.empty()) add("noise", profile.noise.back().delta);
  return measures.empty() ? "" : measures.dump();
}

Result<std::string> Measures(const WorkerCommandOptions& options, const WorkerPlace& place,
                             const std::string& model, StopToken stop) {
  std::string notice;
  MachineProfile profile = LoadMachineProfile(&notice);
  if (!notice.empty()) Notice(notice);
  if (options.measure) {
    auto measured = place.device == "cpu" ? MeasureCeilings(stop) : MeasureGpu(stop);
    if (!measured) return std::unexpected(measured.error());
    measured->noise = profile.noise;
    profile = std::move(*measured);
  }
  return MeasuresOf(profile, place, model);
}

// Sets a flag when stdin ends: what started this pilot is gone.
class InputWatch {
 public:
  InputWatch() : thread_([this] { Watch(); }) {}
  ~InputWatch() {
    leaves_ = true;
    thread_.join();
  }
  InputWatch(const InputWatch&) = delete;
  InputWatch& operator=(const InputWatch&) = delete;
  const std::atomic<bool>& ended() const { return ended_; }

 private:
  void Watch() {
    constexpr int kLookMs = 200;
    while (!leaves_ && !ended_) {
      pollfd input{STDIN_FILENO, POLLIN, 0};
      if (::poll(&input, 1, kLookMs) <= 0) continue;
      std::array<char, 256> bytes;
      if (::read(STDIN_FILENO, bytes.data(), bytes.size()) <= 0) ended_ = true;
    }
  }

  std::atomic<bool> leaves_{false}, ended_{false};
  std::thread thread_;
};

Result<int> Serve(const WorkerCommandOptions& options, StopToken stop) {
  std::vector<std::string> devices;
  if (!options.device.empty()) devices.push_back(options.device);
  ASSAY_ASSIGN_OR_RETURN(const std::vector<WorkerPlace> places, PlacesOf(devices));
  const WorkerPlace& place = places.front();
  ASSAY_ASSIGN_OR_RETURN(const auto queue, OpenQueue(options.queue, {options.lease_s}));
  ASSAY_ASSIGN_OR_RETURN(JobFiles files, JobFiles::Create());
  std::error_code code;
  WorkerProcesses workers(std::filesystem::read_symlink("/proc/self/exe", code).string(), places,
                          WorkerArguments(options));
  PilotTerms terms;
  WorkerFacts& facts = terms.facts;
  facts.node = NodeName();
  facts.name = options.name.empty() ? fmt::format("{}-{}-{}", facts.node, place.Name(), ::getpid())
                                    : options.name;
  facts.device = place.device;
  facts.model = ModelOf(place);
  facts.version = kAssayVersion;
  facts.job = SlurmJob();
  ASSAY_ASSIGN_OR_RETURN(facts.measures, Measures(options, place, facts.model, stop));
  terms.suites = SuiteFolders();
  terms.beat_s = std::min(kBeatMostS, options.lease_s / kBeatsALease);
  terms.stop_after_s = options.stop_after_s;
  terms.idle_stop_s = options.idle_stop_s;
  const RepeatSurroundings repeats = RealRepeats();
  JobWorker worker(workers, repeats.now_ns);
  const bool unicode = DetectTerminal(STDERR_FILENO).unicode;
  Notice(fmt::format("{} takes work from {}; Ctrl-C ends it", facts.name, options.queue));
  Pilot pilot(std::move(terms),
              {*queue, worker, files, repeats,
               [unicode](const std::string& text) { Notice(Printable(text, unicode)); }});
  const Error end = pilot.Run(stop);
  if (end.kind == ErrorKind::kInterrupted && !stop.stopped()) {
    Notice("ends: " + end.message);
    return kExitGood;
  }
  return std::unexpected(end);
}

}  // namespace

int RunPilot(const WorkerCommandOptions& options) {
  const std::atomic<bool>& interrupted = InstallInterruptHandler();
  HeedWeakSandboxFlag(options.allow_weak_sandbox);
  std::optional<InputWatch> watch;
  if (options.stop_with_input) watch.emplace();
  const auto code =
      Serve(options, watch ? StopToken(interrupted, watch->ended()) : StopToken(interrupted));
  return code ? *code : ReportError(code.error());
}

}  // namespace assay
