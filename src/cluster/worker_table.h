// The workers of a queue as a table and as JSON, for assay workers. Pure.
#pragma once

#include <span>
#include <string>

#include "queue/work_queue.h"

namespace assay {

// A worker that was not heard for over `lease_s` is told as silent.
std::string WorkerTable(std::span<const KnownWorker> workers, const QueueCounts& counts,
                        double lease_s);
// Schema assay.workers/1.
std::string WorkersJson(std::span<const KnownWorker> workers, const QueueCounts& counts,
                        double lease_s);

}  // namespace assay
