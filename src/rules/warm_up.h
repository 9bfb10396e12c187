// Detects that a fresh process is warm: its calls take the same time, and its allocator has stopped
// asking the kernel for memory. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay {

class WarmUpWatch {
 public:
  // Adds one call that took `time_ns` and caused `page_faults` page faults of the process.
  void Add(double time_ns, int64_t page_faults);
  // Times alone do not decide: an allocator may serve several calls with new memory, all equally
  // slow, before it finds its freed blocks. A program whose calls keep faulting alike is warm, too.
  bool Warm() const;

 private:
  bool Alike(size_t count) const;
  std::vector<double> times_ns_;
  std::vector<int64_t> page_faults_;
};

}  // namespace assay
