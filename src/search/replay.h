// Replays a recorded search: the engine and the strategy run again on the recorded answers and
// verdicts, and must write what was recorded, byte for byte. Nothing is asked, judged or written.
//
// Theory of operation. Three parts look at one script, the recorded events and the place that was
// reached. The store compares each record that the engine appends with the next one of the script.
// The sources of verdicts and answers give what the script has next: of results those that were
// recorded in one moment, which the seconds in them tell. The clock shows the seconds of the next
// record. Where the script has something that this process cannot have written, the process ended
// there: a new engine goes on from what was reached, as the real one did. If that does not lead on
// either, the replay differs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "archive/store.h"
#include "base/result.h"
#include "search/engine.h"
#include "search/journal.h"
#include "search/step.h"

namespace assay {

struct ReplayDifference {
  int64_t sequence = 0;  // of the record in the archive
  std::string record;    // "result judge/3"
  std::string place;     // in its content: "/cost/evaluations"; or "record"
  std::string recorded, replayed;
};

struct ReplayReport {
  int64_t records = 0;  // of the search, in the archive
  int64_t same = 0;     // of these, from the first one on
  int64_t answers = 0, verdicts = 0, processes = 0;
  std::optional<ReplayDifference> difference;
  std::string next;  // the record that the search would write next: it has not ended; or empty
};

// Makes the strategy of a search anew.
using StrategyMaker =
    std::function<Result<std::unique_ptr<Strategy>>(const SearchSettings& settings)>;

// The newest search, if `id` is empty. `ended` gets the engine as it stands at the end. Errors:
// there is no such search, or its records cannot be read.
Result<ReplayReport> ReplaySearch(Store& archive, const std::string& id,
                                  const StrategyMaker& make_strategy,
                                  const std::function<void(const SearchEngine&)>& ended);

}  // namespace assay
