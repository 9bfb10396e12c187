// The least rights with which a role of PostgreSQL can do its part (docs/database.md).
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace assay {

struct RoleQuota {
  int64_t queued_max = 0, claimed_max = 0;  // 0: not limited
};

// Makes the tables where they are missing, and gives `role` the rights of a "reader", a "worker" or
// a "controller", or with "none" no rights, in place of those that it had. Errors (kUsage): there
// is no such role, or whoever asks does not own the tables.
Result<void> GrantRights(const std::string& url, const std::string& role, const std::string& as,
                         const RoleQuota& quota);

}  // namespace assay
