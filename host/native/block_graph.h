// Runs a block's launches as one CUDA graph, captured before the block's clock and launched within
// it. The processor's time for each launch is then not in the block. Only for the judge's own
// launches: a foreign host would learn the order of its calls ahead.
#pragma once

#include <stdint.h>

#include "cuda/driver.h"

namespace assay::native {

class BlockGraph {
 public:
  // Captures the launches of `enqueue(stream)`, which returns CUDA's result; none of them runs.
  // Returns false if the device refuses: then only the graph of the previous block is gone.
  template <typename Enqueue>
  bool Capture(const cuda::Driver& driver, Enqueue enqueue) {
    if (!Begin(driver)) return false;
    return End(enqueue(stream_));
  }
  cuda::Result Launch() const { return driver_->graph_launch(executable_, nullptr); }

 private:
  bool Begin(const cuda::Driver& driver);
  bool End(cuda::Result enqueued);

  const cuda::Driver* driver_ = nullptr;
  cuda::Stream stream_ = nullptr;
  cuda::GraphExecutable executable_ = nullptr;
};

}  // namespace assay::native
