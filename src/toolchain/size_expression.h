// Evaluates the integer expressions over a call's sizes in the `//!` lines of a device candidate:
// numbers, names, + - * / %, parentheses, ceil_div(a, b), min(a, b), max(a, b), and a tensor's
// x.size(0) and x.count. 64-bit; every overflow is an error. Pure.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// The values of names.
struct SizeScope {
  std::map<std::string, int64_t, std::less<>> values;
  std::map<std::string, std::vector<int64_t>, std::less<>> tensors;  // by name, their shapes
};

// Divisions round towards zero. The error names the fault and quotes its place.
std::expected<int64_t, std::string> EvaluateSize(std::string_view text, const SizeScope& scope);

}  // namespace assay
