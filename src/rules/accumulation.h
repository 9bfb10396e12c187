// Tells sums of float8 products that stay in a matrix unit's short sums from other errors. Pure.
//
// Theory of operation. Hopper's matrix units add float8 products in about 14 bits: what is added is
// cut, towards zero, at 2^-13 of the largest addend. If a kernel lets the unit add all along k
// ("one-level accumulation") and does not move the sums of 128 products or so into float
// ("promotion"), errors grow with the length K of the sums, in one of two ways:
// - addends of one sign: every sum is too small, by 0.4e-5 to 1.7e-5 * K of itself, since 32
//   addends lose up to half a unit each at every step;
// - addends of both signs: losses are random, and the norm of the errors is about 2e-5 * sqrt(K) of
//   that of the results.
// docs/limits.md has the figures; accumulation_test.cc emulates the unit.
#pragma once

#include <string>

#include "rules/gate1.h"

namespace assay {

// Returns a sentence for the author of a failing output whose errors are as large as one-level
// accumulation makes them along an input of float8; empty if they are not, or if no input is
// float8.
std::string DescribeAccumulation(const OutputView& output, const HintContext& context);

}  // namespace assay
