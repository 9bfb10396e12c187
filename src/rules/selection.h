// Compares integer outputs that are the indices of a selection (argmax, topk, sort, max pooling) by
// the values that they select: where values are equal, several orders are right. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rules/gate1.h"

namespace assay {

// The values that such indices stand for, one each (host/python/assay_host/selections.py).
struct SelectedValues {
  DType dtype = DType::kFloat32;
  bool exact = false;        // the values come from no arithmetic: they are equal or wrong
  bool has_truth = false;    // float64 ran
  bool has_windows = false;  // of pooling: each index lies in the window of its element
  int64_t first_fault = 0;   // element whose index is out of range or stands twice
  int64_t out_of_range = 0;  // indices out of range, or of their window
  int64_t repeated = 0;      // indices that stand twice along the axis
  std::vector<std::byte> candidate, reference;  // elements of `dtype`
  std::vector<double> truth;
};

// Compares the output `indices`, which is not the reference's own. A failure has indices in its
// mismatch; `hint` is then set.
OutputComparison CompareSelected(const OutputView& indices, const SelectedValues& selected,
                                 const CompareRule& rule, std::string* hint);

}  // namespace assay
