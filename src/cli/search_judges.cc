#include "cli/search_judges.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "archive/open_store.h"
#include "cli/places.h"
#include "cli/search_parts.h"
#include "cluster/queue_judges.h"
#include "machine/machine.h"
#include "search/env_judge.h"
#include "search/recorded_verdicts.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

Result<std::vector<WorkerPlace>> PlacesOfSearch(const SearchOptions& options, bool on_cpu) {
  if (options.devices.empty() && on_cpu) return std::vector<WorkerPlace>{{"cpu", ""}};
  return PlacesOf(options.devices);
}

// One a device: a search has few candidates at a time.
std::unique_ptr<Fleet> FleetOn(const SearchOptions& options,
                               const std::vector<WorkerPlace>& places) {
  std::vector<std::string> more{"--sessions", "2"};
  if (options.allow_weak_sandbox) more.push_back(fmt::format("--{}", kAllowWeakSandbox));
  std::error_code code;
  return std::make_unique<WorkerProcesses>(fs::read_symlink("/proc/self/exe", code).string(),
                                           PlacesForWorkers(places, 1, UsableCpus()), more);
}

}  // namespace

Result<std::string> DeviceOfSearch(const SearchOptions& options, bool on_cpu) {
  if (options.cluster.asked()) return DeviceOfCluster(options.cluster, options.devices);
  ASSAY_ASSIGN_OR_RETURN(const auto places, PlacesOfSearch(options, on_cpu));
  return places.front().device;
}

Result<std::vector<std::string>> DescribeProblem(const SearchOptions& options, AskedTerms terms,
                                                 StopToken stop) {
  std::vector<WorkerPlace> places{{"cpu", ""}};
  if (options.cluster.asked()) {
    terms.device = "cpu";  // shapes and dtypes are the same, and this machine may have no GPU
  } else {
    ASSAY_ASSIGN_OR_RETURN(places, PlacesOfSearch(options, terms.device == "cpu"));
  }
  return FleetEnvJudge(*FleetOn(options, places)).Describe(terms, stop);
}

Result<SearchJudges> MakeSearchJudges(const SearchOptions& options, const SearchSettings& settings,
                                      const std::string& folder, JudgesEvents events) {
  ASSAY_ASSIGN_OR_RETURN(AskedTerms terms, RecordedTerms(settings.terms));
  ASSAY_ASSIGN_OR_RETURN(AskedTerms screening, RecordedTerms(settings.screening_terms));
  SearchJudges made;
  if (!settings.verdicts.empty()) {
    ASSAY_ASSIGN_OR_RETURN(made.measured, OpenStore(settings.verdicts, StoreAccess::kRead));
    ASSAY_ASSIGN_OR_RETURN(RecordedVerdicts recorded,
                           RecordedVerdicts::Read(*made.measured, settings.problem,
                                                  settings.screening_terms, settings.terms));
    made.source = std::make_unique<RecordedVerdicts>(std::move(recorded));
  } else if (options.cluster.asked()) {
    ASSAY_ASSIGN_OR_RETURN(made.cluster, OpenCluster(options.cluster, folder, terms.device,
                                                     options.allow_weak_sandbox));
    events.notice("its queue is " + made.cluster.place);
    QueueJudgesTerms judging;
    judging.run = made.cluster.run;
    judging.suites = SuiteFolders();
    judging.nodes = std::max(options.cluster.nodes, static_cast<int>(options.cluster.ssh.size()));
    judging.screening = std::move(screening);
    judging.confirming = std::move(terms);
    made.source = std::make_unique<QueueJudges>(*made.cluster.queue, made.cluster.pilots.get(),
                                                std::move(judging),
                                                SupervisorEvents{events.notice, events.progress});
  } else {
    ASSAY_ASSIGN_OR_RETURN(const auto places, PlacesOfSearch(options, terms.device == "cpu"));
    made.workers = FleetOn(options, places);
    made.source = std::make_unique<Judges>(*made.workers, std::move(screening), std::move(terms),
                                           std::move(events));
  }
  return made;
}

}  // namespace assay
