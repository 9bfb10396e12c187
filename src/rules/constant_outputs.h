// Finds outputs of the reference that hold one value in all elements of all draws: a candidate that
// writes this value is right there, whatever it computes. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "rules/gate1.h"

namespace assay {

class ConstantOutputs {
 public:
  // The reference's outputs of a draw; the same ones each time.
  void Add(std::span<const OutputView> outputs);
  // Returns true if no output can be constant any more.
  bool none_left() const;
  // Returns what a card says of them; empty: there are none, or there was no draw.
  std::string Note() const;

 private:
  struct Output {
    std::string name;
    double value = 0;
    bool is_constant = false;
  };
  std::vector<Output> outputs_;
  bool any_draw_ = false;
};

}  // namespace assay
