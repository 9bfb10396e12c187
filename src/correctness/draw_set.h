// Makes the draws of gate 1, once for all candidates of a batch.
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

// The time that draws may take: a reference of which one draw takes long gets fewer kinds.
struct DrawBudget {
  double seconds = 0;  // 0: no limit
  // Called once, before the draws that are left, where some are left out.
  std::function<void(double draw_s, size_t made, size_t all)> cut = [](double, size_t, size_t) {};
};

class Impostors;

class DrawSet {
 public:
  // Makes the draws under seeds derived from `seed`, and learns the reference's own error. Uses
  // master slots from 0 on; if not all fit, each candidate's draws are made anew. Records kinds in
  // `skip` as dropped. `progress`: draws that are done, of how many. Errors: the reference fails on
  // ordinary values.
  static HostResult<DrawSet> Make(Oracle& oracle, const CompareRule& rule, uint64_t seed,
                                  std::span<const wire::DrawKind> skip,
                                  const std::function<void(size_t, size_t)>& progress,
                                  const DrawBudget& budget = {});

  const std::vector<Draw>& draws() const { return draws_; }
  uint32_t slots_used() const { return slots_used_; }
  // Returns the unusual draws for timed blocks; with special values only if the rule demands them.
  std::vector<Draw> Kept() const;
  const std::vector<ReferenceError>& reference_errors() const { return errors_; }  // one an output
  // Returns the same of values with random signs; empty without such a draw.
  const std::vector<ReferenceError>& errors_of_signs() const { return signs_errors_; }
  // Returns those that outputs of a draw of this kind are compared with in gate 1.
  const std::vector<ReferenceError>& ErrorsOf(const Oracle& oracle, wire::DrawKind kind) const;
  // Returns true if inputs of one sign were given random signs, and the reference bears it.
  bool has_signs() const;
  // Says which inputs keep their signs because the reference needs it; empty: none.
  const std::string& kept_signs() const { return kept_signs_; }
  // Says how the problem can be solved without computing anything ("all zeros pass gate 1"); empty:
  // it cannot.
  const std::string& degenerate() const { return degenerate_; }
  // Says which outputs are constants in all draws, where others are not; empty: none.
  const std::string& constant_outputs() const { return constant_outputs_; }
  // Returns the time of the first draw, with its outputs and their float64 side [s].
  double draw_s() const { return draw_s_; }
  // Returns the master slot with this draw's values, made anew if it is not kept, and sets the
  // draw's version of the weights.
  HostResult<uint32_t> Master(Oracle& oracle, size_t index) const;
  // The same with the weights as the reference constructed them, made anew in the master of the
  // first draw. Call Restore() before that one is used again.
  HostResult<uint32_t> MasterOfConstant(Oracle& oracle, size_t index) const;
  // Makes a draw that is not of this set likewise, with its float64 side.
  HostResult<uint32_t> MasterOfOther(Oracle& oracle, const Draw& draw, uint64_t version) const;
  HostResult<void> Restore(Oracle& oracle) const;

 private:
  // Tries impostors that pass in part on whole outputs of a few draws.
  HostResult<void> Confirm(Oracle& oracle, const CompareRule& rule, Impostors* impostors) const;
  HostResult<uint32_t> FillFirst(Oracle& oracle, const Draw& draw, uint64_t version) const;

  std::vector<Draw> draws_;
  uint32_t slots_used_ = 0;
  std::vector<ReferenceError> errors_, signs_errors_;
  std::string degenerate_, constant_outputs_, kept_signs_;
  bool special_values_ = false;  // as the rule has it
  double draw_s_ = 0;
};

}  // namespace assay
