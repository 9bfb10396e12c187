// Mutants of the reference on the draws of gate 1: outputs that are wrong in a known way, put
// before the comparison that judges candidates.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "correctness/call_check.h"
#include "model/audit.h"
#include "rules/gate1.h"
#include "values/oracle.h"

namespace assay {

// A draw beyond gate 1's that might show a survivor.
struct Mend {
  uint64_t kind = 0;
  std::string words;
};

// The host's list of mutants (host/python/assay_host/mutants.py).
struct MutantCatalog {
  std::vector<MutantRecord> mutants;
  std::vector<OperatorRecord> operators;
  std::vector<double> time_shares;      // one a mutant: of the forward's time, that it saves
  std::vector<std::string> precisions;  // one a mutant: the class it computes in; or empty
  std::vector<Mend> mends;
  int left_out = 0;  // weights and operators beyond the limit
};

// Reads that list. Errors (kEnvironment): it is none.
Result<MutantCatalog> ParseMutants(const std::string& text);

struct MutantCheck {
  CallCheck check;       // passed: the draw does not tell it from the reference
  bool changed = false;  // an output differs in value from the reference's
};

// Runs a mutant on the draw in `master`. One that throws fails beyond every bound. It writes into
// the last master slot, which must be another one. Errors: trouble of the oracle's host.
HostResult<MutantCheck> CheckMutant(Oracle& oracle, size_t mutant, uint32_t master,
                                    std::string_view kind, const CompareRule& rule,
                                    std::span<const ReferenceError> errors);

}  // namespace assay
