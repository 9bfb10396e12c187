// Codes with names, as JSON has them.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/check.h"

namespace assay {

template <typename Code>
struct Named {
  Code code;
  std::string_view name;
};

template <typename Code, size_t N>
std::string_view NameIn(const std::array<Named<Code>, N>& table, Code code) {
  const auto found = std::ranges::find(table, code, &Named<Code>::code);
  ASSAY_CHECK(found != table.end());
  return found->name;
}

template <typename Code, size_t N>
std::optional<Code> CodeIn(const std::array<Named<Code>, N>& table, std::string_view name) {
  const auto found = std::ranges::find(table, name, &Named<Code>::name);
  if (found == table.end()) return std::nullopt;
  return found->code;
}

}  // namespace assay
