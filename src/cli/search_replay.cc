#include "cli/search_replay.h"

#include <fmt/format.h>

#include <cstdio>
#include <vector>

#include "archive/open_store.h"
#include "cli/exit_code.h"
#include "cli/recorder.h"
#include "cli/search_parts.h"
#include "search/replay.h"
#include "search/search_report.h"

namespace assay {

Result<int> ReplayRecorded(const SearchOptions& options, StopToken stop) {
  if (!options.problem.problem.empty())
    return UsageError("--replay runs what was recorded: leave the problem out");
  ASSAY_ASSIGN_OR_RETURN(
      const auto archive,
      OpenStore(options.archive.empty() ? DefaultArchive() : options.archive, StoreAccess::kRead));
  std::vector<StrategyParts> processes;  // they stay: strategies refer to their writers
  const auto make = [&](const SearchSettings& settings) -> Result<std::unique_ptr<Strategy>> {
    ASSAY_ASSIGN_OR_RETURN(StrategyParts parts, MakeRecordedStrategy(settings, stop));
    processes.push_back(std::move(parts));
    return std::move(processes.back().strategy);
  };
  std::string end;
  ASSAY_ASSIGN_OR_RETURN(const SearchSettings settings,
                         ReadSearchSettings(*archive, options.replay));
  ASSAY_ASSIGN_OR_RETURN(const ReplayReport report,
                         ReplaySearch(*archive, settings.id, make, [&](const SearchEngine& engine) {
                           end = RenderEnd(engine.table(), engine.ledger());
                         }));
  const std::string text =
      options.jsonl ? ReplayEvent(settings.id, report)
                    : RenderReplay(settings.id, report) + (report.difference ? std::string() : end);
  std::fputs(text.c_str(), stdout);
  return report.difference ? kExitWrong : kExitGood;
}

}  // namespace assay
