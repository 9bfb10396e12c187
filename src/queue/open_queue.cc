#include "queue/open_queue.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "queue/postgres_queue.h"
#include "queue/spool_queue.h"

namespace assay {

Result<std::unique_ptr<WorkQueue>> OpenQueue(const std::string& place, const QueueTerms& terms,
                                             const std::function<void(const std::string&)>& tell) {
  if (IsPostgresUrl(place)) {
    PostgresSessionOptions options;
    options.tell = tell;
    return PostgresQueue::Open(place, terms, std::move(options));
  }
  if (place.find("://") != std::string::npos)
    return UsageError(
        fmt::format("{}: this Assay has no such queue; give a folder that all machines share, or "
                    "postgresql://...",
                    place));
  return SpoolQueue::Open(place, terms, MonotonicNs);
}

}  // namespace assay
