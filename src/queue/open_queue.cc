#include "queue/open_queue.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "queue/spool_queue.h"

namespace assay {

Result<std::unique_ptr<WorkQueue>> OpenQueue(const std::string& place, const QueueTerms& terms) {
  if (place.find("://") != std::string::npos)
    return UsageError(fmt::format(
        "{}: this Assay has no such queue; give a folder that all machines share", place));
  return SpoolQueue::Open(place, terms, MonotonicNs);
}

}  // namespace assay
