// A block's launches as one CUDA graph: captured before the block's clock runs, launched at once
// within it. What the processor takes for each launch is out of the block then. For launches that
// are the judge's own alone: a foreign host would learn the order of its calls ahead.
#pragma once

#include <stdint.h>

#include "cuda/driver.h"

namespace assay::native {

class BlockGraph {
 public:
  // Takes what `enqueue(stream)`, which returns CUDA's result, launches on the stream; nothing of
  // it runs. False where the device refuses: then everything is as it was, but for the graph of
  // the block before, which is gone.
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
