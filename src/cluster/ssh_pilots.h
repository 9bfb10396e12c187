// Pilots on hosts that ssh reaches. Each ends when its connection does, so none outlives the
// controller.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "cluster/pilots.h"

namespace assay {

struct SshPilotTerms {
  std::vector<std::string> hosts;
  std::string script;  // that a shell of the host runs
  std::string logs;    // folder: HOST.log has what its pilot says
  double first_pause_s = 2, pause_max_s = 60;
  double sound_s = 60;   // a pilot that ran so long was sound
  int failures_max = 5;  // in a row, then the host is given up
};

class SshPilots : public Pilots {
 public:
  SshPilots(SshPilotTerms terms, std::function<int64_t()> now_ns);
  ~SshPilots() override;
  SshPilots(const SshPilots&) = delete;
  SshPilots& operator=(const SshPilots&) = delete;

  // Errors (kUsage): all hosts are given up.
  Result<std::vector<std::string>> Tend(const PilotDemand& demand,
                                        std::span<const KnownWorker> workers) override;
  void Forgive() override;
  void End() override;

 private:
  struct Host {
    std::string name;
    pid_t pid = 0;                // of ssh; 0: not running
    UniqueFd input = UniqueFd();  // the pilot ends when it is closed
    double started_s = 0, start_at_s = 0, pause_s = 0;
    int failures = 0;
  };
  double Now() const { return static_cast<double>(now_ns_()) / 1e9; }
  bool IsGivenUp(const Host& host) const { return host.failures >= terms_.failures_max; }
  Result<void> Start(Host* host);
  // Returns a line for the user if the pilot has ended.
  std::string Reap(Host* host);

  const SshPilotTerms terms_;
  const std::function<int64_t()> now_ns_;
  std::vector<Host> hosts_;
};

}  // namespace assay
