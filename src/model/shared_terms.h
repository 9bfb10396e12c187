// The terms of a judgement that one machine may set for another one: they say what is asked, and
// name no file or program of the machine. Problem, size, constants, device and opponent are told
// apart.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace assay {

inline constexpr std::array<std::string_view, 20> kSharedTerms{
    "baseline",  "p",           "bound",           "threads",          "precision",
    "tolerance", "weights",     "probe",           "one_size",         "no_replay",
    "timeout_s", "futility",    "special_values",  "skip_draws",       "budget_s",
    "memory",    "sustained_s", "build_timeout_s", "correctness_only", "state"};

inline bool IsSharedTerm(std::string_view name) {
  return std::ranges::find(kSharedTerms, name) != kSharedTerms.end();
}

}  // namespace assay
