// The queue at a place: a folder that all machines share, or the URL of a PostgreSQL database.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "queue/work_queue.h"

namespace assay {

// `tell` hears of a database that stays away, and of its return. Errors: kUsage (no engine has such
// places, or the place is none), kEnvironment.
Result<std::unique_ptr<WorkQueue>> OpenQueue(
    const std::string& place, const QueueTerms& terms,
    const std::function<void(const std::string&)>& tell = nullptr);

}  // namespace assay
