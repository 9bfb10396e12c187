// Integer expressions over the sizes of a call, as the `//!` lines of a device candidate hold them:
// numbers, names, + - * / %, parentheses, ceil_div(a, b), min(a, b), max(a, b), and a tensor's
// x.size(0) and x.count. Pure. 64-bit, and every overflow is an error.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// What names stand for.
struct SizeScope {
  std::map<std::string, int64_t, std::less<>> values;
  std::map<std::string, std::vector<int64_t>, std::less<>> tensors;  // by name, their shapes
};

// The error says what is wrong with it, and quotes the place. Divisions round towards zero.
std::expected<int64_t, std::string> EvaluateSize(std::string_view text, const SizeScope& scope);

}  // namespace assay
