#include "cli/serve_cluster.h"

#include <fmt/format.h>
#include <poll.h>

#include <filesystem>
#include <utility>

#include "base/version.h"
#include "cli/options.h"

namespace assay {
namespace {

constexpr const char* kJobsFolder = "cluster-jobs";
constexpr int kLookMs = 300, kLooksAfterError = 10;

}  // namespace

Result<std::unique_ptr<ServeCluster>> ServeCluster::Open(const ClusterOptions& options,
                                                         const std::string& folder,
                                                         bool allow_weak_sandbox, Hall& hall,
                                                         JobConductor::Changed changed,
                                                         const std::atomic<bool>& interrupted) {
  JobConductorTerms terms;
  ASSAY_ASSIGN_OR_RETURN(terms.device, DeviceOfCluster(options, {}));
  ASSAY_ASSIGN_OR_RETURN(Cluster cluster,
                         OpenCluster(options, folder, terms.device, allow_weak_sandbox));
  Notice("its pilots' queue is " + cluster.place);
  terms.run = cluster.run;
  terms.runner = fmt::format("{} {}",
                             options.slurm         ? "slurm"
                             : options.ssh.empty() ? "queue"
                                                   : "ssh",
                             terms.device);
  terms.version = kAssayVersion;
  terms.folder = std::filesystem::path(folder) / kJobsFolder;
  std::unique_ptr<ServeCluster> made(new ServeCluster(std::move(cluster), hall, std::move(terms),
                                                      std::move(changed), interrupted));
  ASSAY_RETURN_IF_ERROR(made->conductor_.Open());
  made->thread_ = std::thread([at = made.get()] { at->Run(); });
  return made;
}

ServeCluster::ServeCluster(Cluster cluster, Hall& hall, JobConductorTerms terms,
                           JobConductor::Changed changed, const std::atomic<bool>& interrupted)
    : cluster_(std::move(cluster)),
      conductor_(hall, *cluster_.queue, cluster_.pilots.get(), std::move(terms),
                 SupervisorEvents{Notice, [](const std::string&) {}}, std::move(changed)),
      interrupted_(interrupted) {}

ServeCluster::~ServeCluster() {
  leaves_ = true;
  if (thread_.joinable()) thread_.join();
}

void ServeCluster::Run() {
  std::string told;  // each trouble once, until it is over or another one comes
  while (!interrupted_ && !leaves_) {
    const auto looked = conductor_.Look();
    if (!looked && looked.error().message != told) Notice(looked.error().message);
    told = looked ? "" : looked.error().message;
    for (int i = 0; i < (looked ? 1 : kLooksAfterError) && !interrupted_ && !leaves_; ++i)
      ::poll(nullptr, 0, kLookMs);
  }
  conductor_.End();
  ended_ = true;
}

}  // namespace assay
