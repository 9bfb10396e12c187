#include "cli/validators.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>

namespace assay {

CLI::Validator AboveZero() {
  return CLI::Validator(
      [](std::string& text) {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && std::isfinite(value) && value > 0)
          return std::string();
        return fmt::format("must be a number above 0, not {}", text);
      },
      "above 0");
}

template <typename Number>
CLI::Validator Between(Number low, Number high) {
  const char* kind = std::is_integral_v<Number> ? "whole number" : "number";
  return CLI::Validator(
      [=](std::string& text) {
        Number value{};
        if (CLI::detail::lexical_cast(text, value) && value >= low && value <= high)
          return std::string();
        return fmt::format("must be a {} from {} to {}, not {}", kind, low, high, text);
      },
      fmt::format("{} to {}", low, high));
}

template CLI::Validator Between(int low, int high);
template CLI::Validator Between(int64_t low, int64_t high);
template CLI::Validator Between(double low, double high);

}  // namespace assay
