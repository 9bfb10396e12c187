// Chooses the draws of gate 1 that are left out where the reference is slow. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "wire/types.h"

namespace assay {

// Fewer do not show that an output changes with its input.
inline constexpr size_t kDrawsMin = 2;

// Returns the indices of the draws that are not made, in ascending order: none if all of them,
// `draw_s` each, take at most `budget_s`, or if `budget_s` is 0. Keeps the first, then the kinds
// that a wrong kernel fails most often, then other ordinary ones; kDrawsMin in any case.
std::vector<size_t> DrawsLeftOut(std::span<const wire::DrawKind> kinds, double draw_s,
                                 double budget_s);

}  // namespace assay
