// The pilots of a server: its jobs are judged on the nodes of a cluster.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/result.h"
#include "cli/cluster.h"
#include "cluster/job_conductor.h"
#include "serve/hall.h"

namespace assay {

// Works on a thread of its own, since Slurm's commands may take long.
class ServeCluster {
 public:
  // `folder`: the server's. `changed`: as of JobConductor. Errors: kUsage, kEnvironment.
  static Result<std::unique_ptr<ServeCluster>> Open(const ClusterOptions& options,
                                                    const std::string& folder,
                                                    bool allow_weak_sandbox, Hall& hall,
                                                    JobConductor::Changed changed,
                                                    const std::atomic<bool>& interrupted);
  ~ServeCluster();
  ServeCluster(const ServeCluster&) = delete;
  ServeCluster& operator=(const ServeCluster&) = delete;

  // True once the pilots have ended, and jobs in hand were given back, after an interrupt.
  bool ended() const { return ended_; }

 private:
  ServeCluster(Cluster cluster, Hall& hall, JobConductorTerms terms, JobConductor::Changed changed,
               const std::atomic<bool>& interrupted);
  void Run();

  Cluster cluster_;
  JobConductor conductor_;
  const std::atomic<bool>& interrupted_;
  std::atomic<bool> leaves_ = false, ended_ = false;
  std::thread thread_;  // after all that it uses
};

}  // namespace assay
