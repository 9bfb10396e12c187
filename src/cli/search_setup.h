// What a search is begun with, and the parts that carry it out.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/search_command.h"
#include "run/fleet.h"
#include "search/journal.h"
#include "search/prompt_writer.h"
#include "search/proposals.h"
#include "search/step.h"

namespace assay {

// Errors (kUsage) name the wrong option.
Result<SearchSettings> NewSearchSettings(const SearchOptions& options);

// The terms that a search recorded.
Result<AskedTerms> RecordedTerms(const std::string& terms);

Result<std::vector<WorkerPlace>> PlacesForSearch(const SearchSettings& settings,
                                                 const SearchOptions& options);

// Later members use earlier ones.
struct SearchMeans {
  std::unique_ptr<PromptWriter> writer;  // null: nobody is asked by prompts, nor below
  std::unique_ptr<Proposer> proposer;
  std::unique_ptr<Strategy> strategy;
  std::unique_ptr<Proposals> proposals;  // its threads
};
Result<SearchMeans> MakeSearchMeans(const SearchSettings& settings, const SearchOptions& options);

}  // namespace assay
