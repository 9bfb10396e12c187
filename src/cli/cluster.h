// The queue of a run or a search over many machines, and the pilots that serve it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/options.h"
#include "cluster/pilots.h"
#include "queue/work_queue.h"

namespace assay {

struct Cluster {
  std::string run;  // its name in the queue
  std::string place;
  std::unique_ptr<WorkQueue> queue;
  std::unique_ptr<Pilots> pilots;  // null: others start them
};

// The kind of device of all nodes: as --devices says, else by --gres. Errors (kUsage): the numbers
// of GPUs, which belong to nodes.
Result<std::string> DeviceOfCluster(const ClusterOptions& options,
                                    const std::vector<std::string>& devices);

// `folder`: of the results; it keeps the run's name. Errors: kUsage, kEnvironment.
Result<Cluster> OpenCluster(const ClusterOptions& options, const std::string& folder,
                            const std::string& device, bool allow_weak_sandbox);

}  // namespace assay
