// When a fresh process is warm: its calls take the same time and its allocator has stopped asking
// the kernel for memory. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay {

class WarmUpWatch {
 public:
  // One call that took `time_ns`, in which the process had this many page faults.
  void Add(double time_ns, int64_t page_faults);
  // Time alone does not tell: an allocator may serve several calls with new memory, each equally
  // slow, before it finds its freed blocks. Calls that go on to fault alike are how the program is.
  bool Warm() const;

 private:
  bool Alike(size_t count) const;
  std::vector<double> times_ns_;
  std::vector<int64_t> page_faults_;
};

}  // namespace assay
