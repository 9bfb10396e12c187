// Decides where results of Python hosts go (docs/protocol.md, 'Where a Python host's results go'):
// left in the host's memory, copied into the judge's slots within the clock, or kept. Where
// one side uses memory of its results again both sides' are copied from then on. Pure.
#pragma once

#include "speed/gate2_terms.h"
#include "wire/types.h"

namespace assay {

class CopyPolicy {
 public:
  CopyPolicy(const Forms& forms, bool on_device) : forms_(forms), on_device_(on_device) {}

  // Returns where the results of a side's next block go. `looked_at`: the opponent's outputs are
  // compared after it.
  wire::Results ResultsOf(bool is_candidate, bool looked_at) const;
  // Returns true if copying is taken off this side's time.
  bool SubtractsSettle(bool is_candidate) const { return forms_.subtract_settle && !is_candidate; }
  // This side uses the memory of its results again: both sides' are copied within their times.
  void CopyFromNowOn(bool is_candidate);
  // A host's memory could not be read before it loaded the judged code: both sides copy.
  void CopyBoth() { both_copy_ = true; }

  // Results are copied because the candidate uses their memory again.
  bool candidate_copies() const { return candidate_copies_; }
  bool both_copy() const { return both_copy_; }

 private:
  Forms forms_;
  bool on_device_;
  bool candidate_copies_ = false;
  bool both_copy_ = false;
};

}  // namespace assay
