// The queue at a place: a folder that all machines share.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "queue/work_queue.h"

namespace assay {

// Errors: kUsage (no engine has such places, or the place is none), kEnvironment.
Result<std::unique_ptr<WorkQueue>> OpenQueue(const std::string& place, const QueueTerms& terms);

}  // namespace assay
