#include "rules/constant_outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "rules/elements.h"

namespace assay {
namespace {

bool Same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

bool HoldsOnly(const OutputView& output, double value) {
  double elements[kChunkElements];
  for (int64_t begin = 0; begin < output.count; begin += kChunkElements) {
    const int64_t count = std::min(kChunkElements, output.count - begin);
    LoadAsDouble(output.dtype, output.reference, begin, count, elements);
    if (!std::all_of(elements, elements + count, [&](double one) { return Same(one, value); }))
      return false;
  }
  return true;
}

}  // namespace

void ConstantOutputs::Add(std::span<const OutputView> outputs) {
  if (!any_draw_)
    for (const OutputView& output : outputs)
      outputs_.push_back({output.name,
                          output.count > 0 ? LoadOne(output.dtype, output.reference, 0) : 0,
                          output.count > 0});
  any_draw_ = true;
  ASSAY_CHECK(outputs.size() == outputs_.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    outputs_[i].is_constant = outputs_[i].is_constant && HoldsOnly(outputs[i], outputs_[i].value);
}

bool ConstantOutputs::none_left() const {
  return any_draw_ && std::none_of(outputs_.begin(), outputs_.end(),
                                   [](const Output& output) { return output.is_constant; });
}

std::string ConstantOutputs::Note() const {
  std::string note;
  for (const Output& output : outputs_)
    if (output.is_constant)
      note += fmt::format(
          "{}output {} is {:g} in all elements of all draws: it was compared as a constant alone",
          note.empty() ? "" : "; ", output.name, output.value);
  return note;
}

}  // namespace assay
