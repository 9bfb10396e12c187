#include "session/kernel_listings.h"

#include "base/trace.h"
#include "builders/kernel_records.h"
#include "gpu/turns.h"

namespace assay {

KernelListings::KernelListings(std::vector<BuiltCandidate>& candidates, const Gpu* gpu,
                               StopToken stop)
    : candidates_(candidates), gpu_(gpu), stop_(stop) {
  if (gpu_ == nullptr) return;
  std::vector<const std::string*> artifacts;
  for (const BuiltCandidate& candidate : candidates_) artifacts.push_back(&candidate.artifact);
  listings_ = std::make_unique<Listings>(std::move(artifacts), [stop](const std::string& artifact) {
    return Disassemble(artifact, stop);
  });
}

Result<void> KernelListings::Await() const {
  if (!listings_) return {};
  const Span span("await listings");
  return AwaitOffDevice([&] { listings_->Await(); });
}

// Others may measure meanwhile.
Result<void> KernelListings::AwaitOffDevice(const std::function<void()>& wait) const {
  const auto turns = GpuTurns::Of(gpu_);
  turns->Rest();
  wait();
  return turns->EndRest(stop_);
}

Result<void> KernelListings::AddTo(size_t index, Verdict* verdict) {
  if (!listings_) return {};
  BuiltCandidate& candidate = candidates_[index];
  if (listings_->Holds(index)) {
    Result<std::map<std::string, InstructionMix>> found;
    ASSAY_RETURN_IF_ERROR(AwaitOffDevice([&] { found = listings_->Take(index); }));
    ASSAY_ASSIGN_OR_RETURN(candidate.instructions, std::move(found));
  }
  verdict->kernels = KernelRecordsOf(candidate, gpu_->facts());
  return {};
}

}  // namespace assay
