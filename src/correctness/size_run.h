// Gate 1 at one size of the problem, in a fresh host of the candidate's.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "correctness/gate1_run.h"
#include "sides/candidate_hosts.h"
#include "sides/ending_hosts.h"

namespace assay {

// The problem at one size, and what gate 1 needs of it. `where`: "" or " at ROWS = 3".
struct AtSize {
  Oracle& oracle;
  const OracleOptions& options;  // of a second reference like it
  LiveSlots& live;
  const DrawSet& draws;
  CompareRule rule;
  CandidateHosts& hosts;
  std::string where;
};

// What is the same at all sizes.
struct SizeRunTerms {
  const std::string& tolerance;
  double call_timeout_s;
  bool weights_as_constructed;  // nobody changes them
  StopToken stop;
  EndingHosts* ending;  // takes the host when it is done; null: it ends at once
  std::function<void(const std::string& stage, double fraction)> progress;
};

// One fresh host on every draw of one size; adds to the verdict's costs. nullopt: the verdict is
// final. Errors: what is not the candidate's doing.
Result<std::optional<Gate1Result>> RunAtSize(const AtSize& size, const SizeRunTerms& terms,
                                             Verdict* verdict);

}  // namespace assay
