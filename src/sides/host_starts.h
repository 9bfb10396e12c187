// Starts Python hosts side by side: each imports PyTorch on the processor, then starts CUDA.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "gpu/gpu.h"
#include "hosts/host.h"

namespace assay {

// Runs `import`, which waits for hosts that use the processor alone: other judges may measure on
// the device meanwhile. `gpu`: null for a plain call. Errors: kInterrupted, kEnvironment.
HostResult<void> ImportOffDevice(const Gpu* gpu, StopToken stop,
                                 const std::function<void()>& import);

// Lets hosts that have imported PyTorch start CUDA, and the vendor's `libraries` (LibrariesOf), all
// at once. What fails is told by their next request.
void StartDevices(const std::vector<Host*>& hosts, uint64_t libraries);

}  // namespace assay
