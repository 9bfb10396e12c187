#include "session/kernel_listings.h"

#include "base/trace.h"
#include "builders/kernel_records.h"

namespace assay {

KernelListings::KernelListings(std::vector<BuiltCandidate>& candidates, const Gpu* gpu,
                               StopToken stop)
    : candidates_(candidates), gpu_(gpu) {
  if (gpu_ == nullptr) return;
  std::vector<const std::string*> artifacts;
  for (const BuiltCandidate& candidate : candidates_) artifacts.push_back(&candidate.artifact);
  listings_ = std::make_unique<Listings>(std::move(artifacts), [stop](const std::string& artifact) {
    return Disassemble(artifact, stop);
  });
}

void KernelListings::Await() const {
  if (!listings_) return;
  const Span span("await listings");
  listings_->Await();
}

Result<void> KernelListings::AddTo(size_t index, Verdict* verdict) {
  if (!listings_) return {};
  BuiltCandidate& candidate = candidates_[index];
  if (listings_->Holds(index)) {
    ASSAY_ASSIGN_OR_RETURN(candidate.instructions, listings_->Take(index));
  }
  verdict->kernels = KernelRecordsOf(candidate, gpu_->facts());
  return {};
}

}  // namespace assay
