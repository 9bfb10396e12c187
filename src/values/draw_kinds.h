// Kinds of draws: their names, and the kinds that a problem leaves out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/problem.h"
#include "wire/types.h"

namespace assay {

// Gate 1 makes so many ordinary draws, one of each other kind, and a patch of each form.
inline constexpr uint32_t kOrdinaryDraws = 3, kPatchForms = 4;
inline constexpr uint32_t kDrawsMax =
    kOrdinaryDraws + static_cast<uint32_t>(wire::kDrawKindCount) - 1 + kPatchForms - 1;

// One draw of gate 1.
struct Draw {
  wire::DrawKind kind = wire::DrawKind::kOrdinary;
  uint64_t seed = 0;
  uint32_t master = 0;  // slot that holds it, if kept
  bool dropped = false;
  std::string reason;
  bool for_time = false;  // dropped for the time that it would take
};

std::string_view DrawKindName(wire::DrawKind kind);
std::optional<wire::DrawKind> DrawKindFromName(std::string_view name);

// Returns the names of all kinds but the ordinary one.
std::span<const std::string_view> UnusualDrawNames();

// Returns the kinds that the problem leaves out. Errors (kUsage): no such kind, or the
// ordinary one.
Result<std::vector<wire::DrawKind>> SkippedDraws(const ProblemRequest& problem);

// Returns true if elements that rounding decides may be left out of a draw of this kind
// (rules/moved_elements.h). False for small integers, whose choices are exact and whose ties are
// intended, and for ordinary values, where every timed call must match the reference's own choice.
bool MayLeaveElementsOut(wire::DrawKind kind);

}  // namespace assay
