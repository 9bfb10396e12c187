// assay search --replay: does a recorded search decide the same when it is run again?
#pragma once

#include "base/result.h"
#include "base/stop_token.h"
#include "cli/search_command.h"

namespace assay {

// Prints the report, and returns the exit code.
Result<int> ReplayRecorded(const SearchOptions& options, StopToken stop);

}  // namespace assay
