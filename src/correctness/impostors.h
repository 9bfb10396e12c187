// Outputs that take no work: zeros, those of another draw, an input as it is, or times a constant.
// If one of them passes every draw of gate 1, a right candidate cannot be told from it. Of a large
// output a part is tried, and the whole of a few draws if that passes in all of them: an input of
// one sign passes for its ReLU, and a look at 6.4 GB takes the processor 40 s.
#pragma once

#include <cstddef>
#include <functional>
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
  // Returns true if some pass that were tried in part. Confirm() tries them whole, on a draw that
  // Try() had, other than special values; errors as there.
  bool MustConfirm() const;
  HostResult<void> Confirm(Oracle& oracle, const Draw& draw, const CompareRule& rule,
                           std::span<const ReferenceError> errors);
  // Why no candidate can be told from one that computes nothing; empty: it can.
  std::string Finding() const;
  std::string NoteOfConstant() const { return whole_ && Finding().empty() ? constant_.Note() : ""; }

 private:
  using Bytes = std::vector<std::byte>;
  struct Range {
    int64_t first, count;  // elements
  };
  // Elements of an output, as the reference has them in the present draw, one range after the
  // other.
  struct Tried {
    size_t output = 0;  // number of the plan's arguments
    OutputView view;
    std::vector<Range> ranges;
    Bytes expected;
    std::vector<double> truth;
  };
  // The place of a tensor of an output's shape in a slot.
  struct Place {
    uint64_t offset, element_bytes;
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

  static Tried Some(size_t number, const wire::ArgumentSpec& output);
  // Tries all that pass so far on the present draw.
  HostResult<void> TryEach(const Trial& trial, wire::DrawKind kind);
  // Return the elements that are tried, of a tensor of that output's shape.
  static Bytes Read(const Oracle& oracle, wire::Region region, uint32_t master, const Tried& tried,
                    const Place& place);
  Bytes ReadInput(const Trial& trial, const Tried& tried, size_t input) const;
  void ReadDraw(const Oracle& oracle, uint32_t master);
  std::vector<Bytes> Expected() const;
  static Bytes WholeExpected(const Trial& trial);  // all outputs, as in a slot
  // The expected outputs, but each changed input as it was before the call.
  std::vector<Bytes> WithUnchanged(const Trial& trial) const;
  // Returns true if these outputs pass, and, once it is to be confirmed, `whole()`, laid out as in
  // a slot, does.
  bool Pass(const Trial& trial, const std::vector<Bytes>& outputs,
            const std::function<Bytes()>& whole);
  bool PassInPart(const Trial& trial, const std::vector<Bytes>& outputs) const;
  // `given`: the input's elements.
  CopyView ViewOfCopy(const Tried& tried, size_t input, const Bytes& given) const;
  void FindCopies(const Trial& trial);
  void TryCopies(const Trial& trial);
  std::string FindingOfCopies() const;

  std::vector<wire::ArgumentSpec> arguments_;
  ConstantOutputs constant_;
  std::vector<Tried> tried_;  // outputs in order
  bool whole_ = true;         // each has all of its elements there
  bool confirms_ = false;     // on whole outputs
  std::vector<Bytes> first_;  // of the first draw
  Bytes first_whole_;
  std::vector<Copy> copies_;       // that pass so far
  bool unchanged_passes_ = false;  // of a problem that changes its inputs
  bool zeros_pass_ = true, first_passes_ = true;
  int others_ = 0;
  std::optional<HostTrouble> trouble_;  // of the problem's own check
};

}  // namespace assay
