// The device's memory, which a candidate shares with the judge and the reference: nothing keeps a
// process there from taking all of it, whereupon others fail. Who had it shows when it comes back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gpu/gpu.h"

namespace assay {

class DeviceMemory {
 public:
  // `host_bytes`: what the judge takes for each host [bytes]. `gpu` must stay.
  DeviceMemory(const Gpu& gpu, uint64_t host_bytes);

  // A candidate begins: what is free now is what it finds.
  void Begin();
  // Whether little is left: what earlier processes held may still be on its way back.
  bool IsShort() const { return gpu_->FreeBytes() < 4 * needed_bytes_; }
  // Whether a pair's hosts, and one that ends, take most of what is there: others would be in their
  // way.
  bool HoldsFewHosts() const { return gpu_->FreeBytes() < 3 * needed_bytes_; }
  // How many of `wanted` hosts may take memory at the same time, for each of which the judge takes
  // so much [bytes]: one at least, and no more than fit into one of `parts` of what is free.
  int HostsAtATime(int wanted, uint64_t host_bytes, int parts) const;
  // Something failed, and the candidate's processes still live: keeps what is free.
  void NoteTrouble();
  // Once its processes are gone: what was seen, where next to nothing was left at the trouble and
  // more than half of what the candidate had found is back now, without what the judge had lent its
  // hosts. Else nothing: it was not the candidate that had it, or memory was not what was missing.
  std::optional<std::string> Taken() const;

 private:
  const Gpu* gpu_;
  uint64_t needed_bytes_ = 0;  // that one more host needs
  uint64_t found_bytes_ = 0;
  std::optional<uint64_t> left_bytes_;  // the least at a trouble
  uint64_t held_bytes_ = 0;             // by the judge then
};

}  // namespace assay
