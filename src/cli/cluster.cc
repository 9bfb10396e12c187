#include "cli/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "cluster/pilot_script.h"
#include "cluster/run_name.h"
#include "cluster/slurm_pilots.h"
#include "cluster/ssh_pilots.h"
#include "queue/open_queue.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr const char *kQueueFolder = "queue", *kLogsFolder = "logs";
constexpr size_t kProgramBytesMax = size_t{4} << 30;
// A pilot ends before Slurm's limit by this part of it, at most so many seconds.
constexpr double kMarginPart = 0.2, kMarginMostS = 120;

// Pilots with all that they use.
class PilotsOfSlurm : public Pilots {
 public:
  PilotsOfSlurm(SlurmTerms slurm, SlurmPilotTerms terms)
      : slurm_(std::move(slurm), commands_), pilots_(std::move(terms), slurm_, MonotonicNs) {}
  Result<std::vector<std::string>> Tend(const PilotDemand& demand,
                                        std::span<const KnownWorker> workers) override {
    return pilots_.Tend(demand, workers);
  }
  void Forgive() override { pilots_.Forgive(); }
  void End() override { pilots_.End(); }

 private:
  RealCommands commands_;
  Slurm slurm_;
  SlurmPilots pilots_;
};

Result<PilotProgram> ProgramOfPilots(const ClusterOptions& options, const std::string& place,
                                     const std::string& device, bool allow_weak_sandbox) {
  PilotProgram program;
  std::error_code code;
  if (options.bundle.empty()) {
    program.path = fs::read_symlink("/proc/self/exe", code).string();
    ASSAY_ASSIGN_OR_RETURN(const std::string content, ReadFile(program.path, kProgramBytesMax));
    program.hash = Sha256Hex(content);
  } else {
    program.bundle = fs::absolute(options.bundle, code).string();
    ASSAY_ASSIGN_OR_RETURN(const std::string content, ReadFile(program.bundle, kProgramBytesMax));
    program.bundle_hash = Sha256Hex(content);
  }
  program.arguments = {"worker",
                       "--queue",
                       place,
                       "--device",
                       device,
                       "--lease",
                       fmt::format("{}", options.lease_s),
                       "--idle-stop",
                       fmt::format("{}", options.idle_stop_s)};
  if (options.check_nodes) program.arguments.push_back("--measure");
  if (allow_weak_sandbox) program.arguments.push_back(fmt::format("--{}", kAllowWeakSandbox));
  if (!options.ssh.empty()) program.arguments.push_back("--stop-with-input");
  if (!options.time.empty()) {
    ASSAY_ASSIGN_OR_RETURN(const double limit_s, ParseSlurmTime(options.time));
    program.arguments.insert(
        program.arguments.end(),
        {"--stop-after",
         fmt::format("{:.0f}", limit_s - std::min(kMarginMostS, kMarginPart * limit_s))});
  }
  return program;
}

Result<std::unique_ptr<Pilots>> MakePilots(const ClusterOptions& options, const Cluster& cluster,
                                           const std::string& logs, const std::string& device,
                                           bool allow_weak_sandbox) {
  ASSAY_ASSIGN_OR_RETURN(const PilotProgram program,
                         ProgramOfPilots(options, cluster.place, device, allow_weak_sandbox));
  std::error_code code;
  fs::create_directories(logs, code);
  if (code) return EnvironmentError(fmt::format("cannot make {}: {}", logs, code.message()));
  if (!options.slurm) {
    SshPilotTerms ssh;
    ssh.hosts = options.ssh;
    ssh.script = PilotScript(program);
    ssh.logs = logs;
    return std::make_unique<SshPilots>(std::move(ssh), MonotonicNs);
  }
  SlurmTerms slurm;
  slurm.name = "assay-" + cluster.run;
  slurm.partition = options.partition;
  slurm.gres = options.gres;
  slurm.time = options.time;
  slurm.logs = logs;
  SlurmPilotTerms terms;
  terms.nodes = options.nodes;
  terms.script = PilotScript(program);
  terms.logs = logs;
  return std::make_unique<PilotsOfSlurm>(std::move(slurm), std::move(terms));
}

}  // namespace

Result<std::string> DeviceOfCluster(const ClusterOptions& options,
                                    const std::vector<std::string>& devices) {
  if (devices.empty())
    return std::string(options.gres.find("gpu") == std::string::npos ? "cpu" : "cuda");
  if (devices.size() == 1 && (devices.front() == "cpu" || devices.front() == "cuda"))
    return devices.front();
  return UsageError(
      "--devices: give cpu or cuda; --gres says how many GPUs a worker of a cluster "
      "gets");
}

Result<Cluster> OpenCluster(const ClusterOptions& options, const std::string& folder,
                            const std::string& device, bool allow_weak_sandbox) {
  Cluster cluster;
  std::error_code code;
  cluster.place = options.queue;
  if (cluster.place.empty()) cluster.place = (fs::path(folder) / kQueueFolder).string();
  if (cluster.place.find("://") == std::string::npos)
    cluster.place = fs::absolute(cluster.place, code).string();
  ASSAY_ASSIGN_OR_RETURN(cluster.run, RunName(folder));
  ASSAY_ASSIGN_OR_RETURN(cluster.queue, OpenQueue(cluster.place, {options.lease_s}));
  if (!options.slurm && options.ssh.empty()) return cluster;
  const std::string logs = (fs::absolute(folder, code) / kLogsFolder).string();
  ASSAY_ASSIGN_OR_RETURN(cluster.pilots,
                         MakePilots(options, cluster, logs, device, allow_weak_sandbox));
  return cluster;
}

}  // namespace assay
