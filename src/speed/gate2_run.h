// Runs gate 2: interleaved rounds over pairs of fresh hosts until the sequential test decides.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/verdict.h"
#include "speed/gate2_terms.h"
#include "speed/ledger.h"

namespace assay {

struct Gate2Result {
  BaselineResult result;
  std::vector<PairSamples> samples;
  CandidateChecks checks;  // `wrong` is set if a timed call was wrong: gate 1 failed after all
  SpentTime spent;
  std::optional<SustainedRecord> sustained;
  // The candidate's time by library, in one of the first pairs; or the reason why it was not seen.
  std::optional<LibraryTime> libraries;
  std::string libraries_unseen;
  // Set if calls in a row were computed ahead of their turn: what was seen.
  std::optional<std::string> worked_ahead;
};

// Errors: a host's trouble, which says whose it is.
HostResult<Gate2Result> RunGate2(const Gate2Setup& setup);

}  // namespace assay
