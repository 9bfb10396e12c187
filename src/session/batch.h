// The values for judging one batch of frozen sources: draws, other sizes, and values for timed
// blocks. They judge no candidate that is handed in after one of the batch's verdicts.
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
  OtherSizes other_sizes;  // none if the problem has one size
  DrawSet draws;
  ValuePool values;
};

// Gets the progress of drawing: draws that are done, of how many.
using DrawProgress = std::function<void(size_t done, size_t all)>;

// Makes a batch's other sizes under `seed`, loaded into `host` one after the other; none if the
// problem has one size.
Result<OtherSizes> MakeBatchSizes(const Workbench& bench, uint64_t seed,
                                  const std::shared_ptr<Host>& host, const DrawProgress& progress);

// Makes the batch under `seed`. No host under test may run. Errors:
// the reference cannot be judged (kUsage), or memory holds too few of the problem's tensors
// (kEnvironment).
Result<std::unique_ptr<Batch>> MakeBatch(Workbench& bench, uint64_t seed, OtherSizes other_sizes,
                                         const DrawProgress& progress);

}  // namespace assay
