// Names of the server's enums, as the database and JSON have them. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "serve/types.h"

namespace assay {

std::string_view RoleName(Role role);
std::optional<Role> RoleFromName(std::string_view name);
std::string_view JobKindName(JobKind kind);
std::optional<JobKind> JobKindFromName(std::string_view name);
std::string_view JobStateName(JobState state);
std::optional<JobState> JobStateFromName(std::string_view name);

inline bool IsTerminal(JobState state) {
  return state != JobState::kQueued && state != JobState::kRunning;
}

}  // namespace assay
