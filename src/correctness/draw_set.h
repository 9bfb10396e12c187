// The draws of gate 1, made once for all candidates of a batch.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "rules/gate1.h"
#include "values/draw_kinds.h"
#include "values/oracle.h"

namespace assay {

class DrawSet {
 public:
  // Makes the draws under seeds from `seed`; learns the reference's own error. Errors: the
  // reference fails on ordinary values. Uses master slots from 0; where they do not all fit, draws
  // are made anew for each candidate. Kinds in `skip` are recorded as dropped.
  static HostResult<DrawSet> Make(Oracle& oracle, const CompareRule& rule, uint64_t seed,
                                  std::span<const wire::DrawKind> skip,
                                  const std::function<void(size_t, size_t)>& progress);

  const std::vector<Draw>& draws() const { return draws_; }
  uint32_t slots_used() const { return slots_used_; }
  // The unusual ones that are kept in masters, with their float64 side: for timed blocks.
  std::vector<Draw> Kept() const;
  const std::vector<ReferenceError>& reference_errors() const { return errors_; }  // one an output
  // Why the problem can be solved without computing anything ("all zeros pass gate 1"); empty: it
  // cannot.
  const std::string& degenerate() const { return degenerate_; }
  // The master slot with this draw's values, made anew where it was not kept; its version of the
  // weights is then in place.
  HostResult<uint32_t> Master(Oracle& oracle, size_t index) const;

 private:
  std::vector<Draw> draws_;
  uint32_t slots_used_ = 0;
  std::vector<ReferenceError> errors_;
  std::string degenerate_;
};

}  // namespace assay
