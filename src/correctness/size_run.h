// Runs gate 1 at one size of the problem, in a fresh host of the candidate's.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "correctness/gate1_run.h"
#include "sides/candidate_hosts.h"
#include "sides/ending_hosts.h"

namespace assay {

// The problem at one size, as gate 1 needs it. `where`: "" or " at ROWS = 3".
struct AtSize {
  Oracle& oracle;
  const OracleOptions& options;  // of a second reference like it
  LiveSlots& live;
  const DrawSet& draws;
  CompareRule rule;
  CandidateHosts& hosts;
  std::string where;
  bool constant_weights = false;  // all calls have the weights that the host loaded
};

// Terms that are the same at all sizes.
struct SizeRunTerms {
  const std::string& tolerance;
  double call_timeout_s;
  StopToken stop;
  EndingHosts* ending;  // takes the host at the end; null: it ends at once
  std::function<void(const std::string& stage, double fraction)> progress;
};

// Runs one fresh host on every draw of one size, and adds to the verdict's costs. Returns nullopt
// if the verdict is final. Errors: trouble that is not the candidate's doing.
Result<std::optional<Gate1Result>> RunAtSize(const AtSize& size, const SizeRunTerms& terms,
                                             Verdict* verdict);

}  // namespace assay
