// What one batch of frozen sources is judged on: draws, another size, and values for timed blocks.
// No candidate that was handed in after one of its verdicts stood is judged on it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/result.h"
#include "correctness/draw_set.h"
#include "correctness/other_size.h"
#include "session/workbench.h"
#include "values/value_pool.h"

namespace assay {

struct Batch {
  std::unique_ptr<OtherSize> other_size;  // null where the problem has one size
  DrawSet draws;
  ValuePool values;
};

// How drawing goes on: draws that are done, of how many.
using DrawProgress = std::function<void(size_t done, size_t all)>;

// The other size of a batch under `seed`, loaded into `host`; null where the problem has one size.
Result<std::unique_ptr<OtherSize>> MakeBatchSize(const Workbench& bench, uint64_t seed,
                                                 std::shared_ptr<Host> host,
                                                 const DrawProgress& progress);

// The batch under `seed`. No host under test may run: the weights change. Errors (kUsage): the
// reference cannot be judged, or memory holds too few of the problem's tensors.
Result<std::unique_ptr<Batch>> MakeBatch(Workbench& bench, uint64_t seed,
                                         std::unique_ptr<OtherSize> other_size,
                                         const DrawProgress& progress);

}  // namespace assay
