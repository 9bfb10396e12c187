// A job as its runner gets it (docs/serve.md).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "serve/hall.h"

namespace assay {

inline constexpr int kLeaseOfJobS = 60, kSecondsOfJobMax = 600;

struct GivenJob {
  int64_t id = 0;
  std::string lease;  // kept nowhere else
  std::string body;   // JSON: lease, lease_s and job
};

// Takes the first job of the queue that the runner of this account may have; nullopt: there is
// none. The caller holds the hall's mutex. A job whose sources are gone fails here, and another one
// is taken. `changed` hears of each.
Result<std::optional<GivenJob>> GiveJob(Hall& hall, const Account& owner, const KnownRunner& facts,
                                        Instant now,
                                        const std::function<void(int64_t job)>& changed);

}  // namespace assay
