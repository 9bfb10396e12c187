// Where the candidate's time goes, by library: blocks of one pair that do not count.
#include <algorithm>
#include <memory>

#include "base/clock.h"
#include "base/median.h"
#include "base/trace.h"
#include "hosts/library_time.h"
#include "machine/shared_region.h"
#include "speed/library_kernels.h"
#include "speed/pair_runner.h"

namespace assay {
namespace {

// The candidate is watched for about this long.
constexpr int64_t kWatchedNs = 25'000'000;
// CUPTI looks at the device when it is first asked, which may take a second or two.
constexpr double kTraceGraceS = 5;
// A block that is watched takes at most so many times as long as those that counted.
constexpr double kWatchedFactor = 10;

}  // namespace

// On values that it has had, and with outputs as in every block.
HostResult<void> PairRunner::Watch(Side tried) {
  const Span span("watch for libraries");
  const int64_t begin_ns = MonotonicNs();
  if (setup_.live.on_device()) {
    if (setup_.own_kernels != nullptr) WatchOnDevice(tried);
    // A host that hangs here must not be left with fewer pairs for it.
    budget_->Extend(MonotonicNs() - begin_ns);
    return {};
  }
  LibraryClock clock;
  while (MonotonicNs() - begin_ns < kWatchedNs) {
    setup_.live.Poison(tried.host->outputs);
    if (auto done = tried.host->host.WatchBlock(RandomOrder(slots_, calls_),
                                                setup_.call_timeout_s + kBlockGraceS, &clock);
        !done)
      return done;
  }
  if (const LibraryTime time = clock.Time(); time.samples > 0) result_->libraries = time;
  return {};
}

// The host has run its part of the pair, and nothing more is asked of it: what it fails at here is
// that nothing was seen.
void PairRunner::WatchOnDevice(Side tried) {
  Host& host = tried.host->host;
  const double call_ns = Median({candidate_ns_.end() - 2 * rounds_, candidate_ns_.end()});
  const double patience_s = kTraceGraceS + std::min(kWatchedFactor * calls_ * call_ns / 1e9,
                                                    setup_.call_timeout_s + kBlockGraceS);
  const auto see = [&]() -> HostResult<std::unique_ptr<wire::KernelTrace>> {
    auto region = SharedRegion::Create("assay-trace", sizeof(wire::KernelTrace));
    auto sealed = region ? region->SealSize() : Result<void>();
    if (!region || !sealed)
      return HostFailed(HostTrouble::Kind::kEnvironment,
                        (region ? sealed.error() : region.error()).message);
    if (auto left = host.LeaveBlocks(patience_s); !left) return std::unexpected(left.error());
    if (auto shared = host.Attach(wire::Region::kTrace, *region, true); !shared)
      return std::unexpected(shared.error());
    if (auto entered = host.EnterBlocks(patience_s); !entered)
      return std::unexpected(entered.error());
    host.Trace();
    auto ran = setup_.live.RunUncounted(host, tried.host->outputs, RandomOrder(slots_, calls_),
                                        patience_s);
    if (!ran) return std::unexpected(ran.error());
    // What is looked at must not change meanwhile.
    return std::make_unique<wire::KernelTrace>(*region->as<wire::KernelTrace>());
  };
  const auto trace = see();
  if (!trace) {
    result_->libraries_unseen = trace.error().message;
  } else if (const LibraryTime time = LibraryTimeOf(**trace, *setup_.own_kernels);
             time.samples > 0) {
    result_->libraries = time;
  } else {
    result_->libraries_unseen =
        (*trace)->failed != 0 ? TraceFailure(**trace) : "CUPTI saw no kernel of its calls";
  }
}

}  // namespace assay
