// Kinds of draws: their names, which of them a problem leaves out, which may be left to rounding.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/problem.h"
#include "wire/types.h"

namespace assay {

// One draw of gate 1.
struct Draw {
  wire::DrawKind kind = wire::DrawKind::kOrdinary;
  uint64_t seed = 0;
  uint32_t master = 0;  // slot that holds it, when kept
  bool dropped = false;
  std::string reason;
};

std::string_view DrawKindName(wire::DrawKind kind);
std::optional<wire::DrawKind> DrawKindFromName(std::string_view name);

// Kinds that the problem's suite leaves out. Errors (kUsage): no such kind, or the ordinary one.
Result<std::vector<wire::DrawKind>> SkippedDraws(const ProblemRequest& problem);

// Draws in which elements may be left out that rounding decides (rules/moved_elements.h). Choices
// between small integers are exact, and their ties are meant; on ordinary values every timed call
// is held to the reference's own output, whichever way that chose.
bool MayLeaveElementsOut(wire::DrawKind kind);

}  // namespace assay
