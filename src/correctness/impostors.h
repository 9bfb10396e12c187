// Outputs that take no work: zeros, those of another draw, an input as it is, or times a constant.
// If one of them passes every draw of gate 1, a right candidate cannot be told from it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rules/constant_outputs.h"
#include "rules/scaled_copy.h"
#include "values/draw_kinds.h"
#include "values/oracle.h"

namespace assay {

class Impostors {
 public:
  explicit Impostors(const wire::Plan& plan);

  // Tries them on the next draw. One that no candidate has to be right on tells none from another.
  // Errors: the problem's own check gave no answer.
  HostResult<void> Try(Oracle& oracle, const Draw& draw, const CompareRule& rule,
                       std::span<const ReferenceError> errors);
  // Why no candidate can be told from one that computes nothing; empty: it can.
  std::string Finding() const;
  std::string NoteOfConstant() const { return Finding().empty() ? constant_.Note() : ""; }

 private:
  // An output of the plan in whose place stands an input of its shape, times a factor.
  struct Copy {
    size_t output = 0, input = 0;  // numbers of the plan's arguments
    double factor = 1;
    bool is_the_truth = true;  // so far: up to float64's rounding
  };

  bool Pass(Oracle& oracle, uint32_t master, const std::vector<std::byte>& outputs,
            const CompareRule& rule, std::span<const ReferenceError> errors);
  void FindCopies(Oracle& oracle, uint32_t master);
  void TryCopies(Oracle& oracle, uint32_t master, const CompareRule& rule,
                 std::span<const ReferenceError> errors);
  std::string FindingOfCopies() const;

  std::vector<wire::ArgumentSpec> arguments_;
  ConstantOutputs constant_;
  std::vector<std::byte> zeros_, first_;
  std::vector<Copy> copies_;       // that pass so far
  bool unchanged_passes_ = false;  // of a problem that changes its inputs
  bool zeros_pass_ = true, first_passes_ = true;
  int others_ = 0;
  std::optional<HostTrouble> trouble_;  // of the problem's own check
};

}  // namespace assay
