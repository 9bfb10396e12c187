// Watches the device's memory, which a candidate shares with the judge and the reference. A process
// can take all of it, and then others fail. The memory that comes back when a process ends shows
// who had it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gpu/gpu.h"

namespace assay {

// A host's part of the device's memory, besides its context [bytes].
struct HostDemand {
  uint64_t outputs_bytes = 0;  // its own slots
  uint64_t results_bytes = 0;  // in which it may leave results
  uint64_t weights_bytes = 0;  // of a host in PyTorch: its model's
  uint64_t working_bytes = 0;  // while it loads or runs forward
};
// Counts the model's weights three times: PyTorch's hosts clone them while they load, and
// `compiled` has a copy of its own.
uint64_t HostBytes(const HostDemand& demand);

class DeviceMemory {
 public:
  // `host_bytes`: the judge's memory for each host [bytes]. `is_scarce`: what is free is for
  // others, but for a pair's hosts. `gpu` must outlive this object.
  DeviceMemory(const Gpu& gpu, uint64_t host_bytes, bool is_scarce = false);

  // Begins a candidate: notes the free memory that it finds.
  void Begin();
  // Returns true if little is free: memory of earlier processes may still be on its way back.
  bool IsShort() const { return is_scarce_ || gpu_->FreeBytes() < 4 * needed_bytes_; }
  // Returns true if a pair's hosts, and one that ends, take most of the memory: no others should
  // start.
  bool HoldsFewHosts() const { return is_scarce_ || gpu_->FreeBytes() < 3 * needed_bytes_; }
  // Returns how many of `wanted` hosts may start at the same time: at least one, and no more than
  // fit into 1/`parts` of the free memory. `host_bytes`: the judge's memory for each [bytes].
  int HostsAtATime(int wanted, uint64_t host_bytes, int parts) const;
  // Notes the free memory after a failure, while the candidate's processes still live.
  void NoteTrouble();
  // Call once the candidate's processes are gone. Describes the finding if almost nothing was free
  // at the trouble and more than half of the memory that the candidate found is back, without the
  // judge's own. Otherwise nullopt: the candidate did not have the memory, or memory was not the
  // trouble.
  std::optional<std::string> Taken() const;

 private:
  const Gpu* gpu_;
  bool is_scarce_ = false;
  uint64_t needed_bytes_ = 0;  // for one more host
  uint64_t found_bytes_ = 0;
  std::optional<uint64_t> left_bytes_;  // least free at a trouble
  uint64_t held_bytes_ = 0;             // by the judge at that time
};

}  // namespace assay
