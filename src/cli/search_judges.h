// The source of a search's verdicts: workers of this machine, the pilots of a cluster, or an
// archive.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "archive/store.h"
#include "base/result.h"
#include "cli/cluster.h"
#include "cli/search_command.h"
#include "search/journal.h"
#include "search/judges.h"
#include "worker_client/fleet.h"

namespace assay {

// The device on which candidates of a new search are judged; `on_cpu`: they need no GPU. Errors:
// kUsage, kEnvironment.
Result<std::string> DeviceOfSearch(const SearchOptions& options, bool on_cpu);

// The lines of the problem's signature (EnvJudge::Describe).
Result<std::vector<std::string>> DescribeProblem(const SearchOptions& options, AskedTerms terms,
                                                 StopToken stop);

struct SearchJudges {
  std::unique_ptr<Fleet> workers;
  Cluster cluster;
  std::unique_ptr<Store> measured;
  std::unique_ptr<VerdictSource> source;  // goes before the others
};
// `folder`: the search's own, for its queue and its pilots' logs. Errors: kUsage, kEnvironment.
Result<SearchJudges> MakeSearchJudges(const SearchOptions& options, const SearchSettings& settings,
                                      const std::string& folder, JudgesEvents events);

}  // namespace assay
