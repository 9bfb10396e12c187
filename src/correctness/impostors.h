// Outputs that take no work: zeros, those of another draw, an input as it is, or times a constant.
// If one of them passes every draw of gate 1, a right candidate cannot be told from it. Large
// outputs are tried by their first elements.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rules/constant_outputs.h"
#include "rules/gate1.h"
#include "rules/scaled_copy.h"
#include "values/draw_kinds.h"
#include "values/oracle.h"

namespace assay {

class Impostors {
 public:
  // `wholly`: outputs of any size are tried whole.
  Impostors(const wire::Plan& plan, bool wholly);

  // Tries them on the next draw. One that no candidate has to be right on tells none from another.
  // Errors: the problem's own check gave no answer.
  HostResult<void> Try(Oracle& oracle, const Draw& draw, const CompareRule& rule,
                       std::span<const ReferenceError> errors);
  // Why no candidate can be told from one that computes nothing; empty: it can.
  std::string Finding() const;
  std::string NoteOfConstant() const { return Finding().empty() ? constant_.Note() : ""; }

 private:
  using Bytes = std::vector<std::byte>;
  // The first elements of an output, as the reference has them in the present draw.
  struct Tried {
    size_t output = 0;  // number of the plan's arguments
    OutputView view;
    Bytes expected;
    std::vector<double> truth;
  };
  struct Trial {
    Oracle& oracle;
    uint32_t master;
    const CompareRule& rule;
    std::span<const ReferenceError> errors;
  };
  // An output in whose place stands an input of its shape, times a factor.
  struct Copy {
    size_t output = 0, input = 0;  // numbers of tried_, and of the plan's arguments
    double factor = 1;
    bool is_the_truth = true;  // so far: up to float64's rounding
  };

  void ReadDraw(const Oracle& oracle, uint32_t master);
  std::vector<Bytes> Expected() const;
  // The expected outputs, but each changed input as it was before the call.
  std::vector<Bytes> WithUnchanged(const Trial& trial) const;
  bool Pass(const Trial& trial, const std::vector<Bytes>& outputs);
  bool PassWhole(const Trial& trial, const std::vector<Bytes>& outputs);
  // `given`: keeps the input's elements.
  CopyView ViewOfCopy(const Trial& trial, const Tried& tried, size_t input, Bytes* given) const;
  void FindCopies(const Trial& trial);
  void TryCopies(const Trial& trial);
  std::string FindingOfCopies() const;

  std::vector<wire::ArgumentSpec> arguments_;
  ConstantOutputs constant_;
  std::vector<Tried> tried_;       // outputs in order
  bool whole_ = true;              // each has all of its elements there
  std::vector<Bytes> first_;       // of the first draw
  std::vector<Copy> copies_;       // that pass so far
  bool unchanged_passes_ = false;  // of a problem that changes its inputs
  bool zeros_pass_ = true, first_passes_ = true;
  int others_ = 0;
  std::optional<HostTrouble> trouble_;  // of the problem's own check
};

}  // namespace assay
