// The device's memory, which a candidate shares with the judge and the reference: nothing keeps a
// process there from taking all of it, whereupon the reference starts no more, or is slow.
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

  // Before a candidate's first process: what is free now is what it finds.
  void Begin() { found_bytes_ = gpu_->FreeBytes(); }
  // What was seen, where less is left than one more host needs although there was plenty for all
  // hosts of a judgement: the candidate has it.
  std::optional<std::string> Taken() const;

 private:
  const Gpu* gpu_;
  uint64_t needed_bytes_ = 0;  // that one more host needs
  uint64_t plenty_bytes_ = 0;
  uint64_t found_bytes_ = 0;  // 0: no candidate has begun
};

}  // namespace assay
