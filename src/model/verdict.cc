#include "model/verdict.h"

#include <array>

namespace assay {
namespace {

constexpr std::array<std::pair<Outcome, std::string_view>, 10> kOutcomes{{
    {Outcome::kFaster, "faster"},
    {Outcome::kSlower, "slower"},
    {Outcome::kTie, "tie"},
    {Outcome::kUnsettled, "unsettled"},
    {Outcome::kWrong, "wrong"},
    {Outcome::kBuildFailed, "build_failed"},
    {Outcome::kCrashed, "crashed"},
    {Outcome::kTimedOut, "timed_out"},
    {Outcome::kOutOfMemory, "out_of_memory"},
    {Outcome::kFoul, "foul"},
}};

}  // namespace

std::string_view OutcomeName(Outcome outcome) {
  for (const auto& [value, name] : kOutcomes)
    if (value == outcome) return name;
  return "unknown";
}

std::optional<Outcome> OutcomeFromName(std::string_view name) {
  for (const auto& [value, known] : kOutcomes)
    if (known == name) return value;
  return std::nullopt;
}

}  // namespace assay
