#include "block_graph.h"

namespace assay::native {

using cuda::kSuccess;

bool BlockGraph::Begin(const cuda::Driver& driver) {
  driver_ = &driver;
  if (executable_ != nullptr) driver.graph_executable_destroy(executable_);
  executable_ = nullptr;
  if (stream_ == nullptr && driver.stream_create(&stream_, 0) != kSuccess) return false;
  return driver.capture_begin(stream_, cuda::kCaptureThreadLocal) == kSuccess;
}

bool BlockGraph::End(cuda::Result enqueued) {
  cuda::Graph graph = nullptr;
  const cuda::Result ended = driver_->capture_end(stream_, &graph);
  const bool captured = enqueued == kSuccess && ended == kSuccess &&
                        driver_->graph_instantiate(&executable_, graph, 0) == kSuccess;
  if (graph != nullptr) driver_->graph_destroy(graph);
  // The first launch would take what this takes.
  return captured && driver_->graph_upload(executable_, nullptr) == kSuccess;
}

}  // namespace assay::native
