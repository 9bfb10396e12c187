#include "sides/host_starts.h"

#include "base/trace.h"
#include "gpu/turns.h"

namespace assay {
namespace {

constexpr double kStartDeviceS = 120;

}  // namespace

HostResult<void> ImportOffDevice(const Gpu* gpu, StopToken stop,
                                 const std::function<void()>& import) {
  const auto turns = GpuTurns::Of(gpu);
  if (turns) turns->Rest();
  import();
  if (!turns) return {};
  const auto back = turns->EndRest(stop);
  if (!back) return TroubleFrom(back.error());
  return {};
}

void StartDevices(const std::vector<Host*>& hosts, uint64_t libraries) {
  const Span span("start CUDA");
  std::vector<Host*> starting;
  for (Host* host : hosts)
    if (host->Post(wire::FrameKind::kStartDevice, {&libraries, 1})) starting.push_back(host);
  for (Host* host : starting) [[maybe_unused]] auto started = host->Collect(kStartDeviceS);
}

}  // namespace assay
