#include "speed/watch.h"

#include <algorithm>
#include <memory>

#include "base/clock.h"
#include "base/trace.h"
#include "hosts/library_time.h"
#include "machine/shared_region.h"
#include "speed/exchange.h"

namespace assay {
namespace {

// The candidate is watched for about this long.
constexpr int64_t kWatchedNs = 25'000'000;
// CUPTI looks at the device when it is first asked, which may take a second or two.
constexpr double kTraceGraceS = 5;
// A block that is watched takes at most so many times as long as those that counted.
constexpr double kWatchedFactor = 10;

// Runs a block under CUPTI, and returns a copy of what the host wrote: it must not change while it
// is read.
HostResult<std::unique_ptr<wire::KernelTrace>> TraceBlock(const WatchTerms& terms, LiveHost& live,
                                                          std::span<const uint32_t> order,
                                                          double patience_s) {
  Host& host = live.host;
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
  if (auto ran = terms.live.RunUncounted(host, live.outputs, order, patience_s); !ran)
    return std::unexpected(ran.error());
  return std::make_unique<wire::KernelTrace>(*region->as<wire::KernelTrace>());
}

// The host has run its part of the pair, and nothing more is asked of it.
void WatchOnDevice(const WatchTerms& terms, HostSide& candidate, std::mt19937_64& random,
                   WatchedTime* watched) {
  const double block_s = terms.length.calls * terms.call_ns / 1e9;
  const double patience_s =
      kTraceGraceS + std::min(kWatchedFactor * block_s, candidate.timeout_s());
  const std::vector<uint32_t> order = RandomOrder(terms.length.slots, terms.length.calls, random);
  const auto trace = TraceBlock(terms, candidate.host(), order, patience_s);
  if (!trace) {
    watched->unseen = trace.error().message;
  } else if (const LibraryTime time = LibraryTimeOf(**trace, *terms.own_kernels);
             time.samples > 0) {
    watched->libraries = time;
  } else {
    watched->unseen =
        (*trace)->failed != 0 ? TraceFailure(**trace) : "CUPTI saw no kernel of its calls";
  }
}

}  // namespace

HostResult<void> Watch(const WatchTerms& terms, HostSide& candidate, std::mt19937_64& random,
                       WatchedTime* watched) {
  const Span span("watch for libraries");
  if (terms.live.on_device()) {
    if (terms.own_kernels != nullptr) WatchOnDevice(terms, candidate, random, watched);
    return {};
  }
  const int64_t begin_ns = MonotonicNs();
  LibraryClock clock;
  while (MonotonicNs() - begin_ns < kWatchedNs) {
    // Outputs are as in every block.
    candidate.Poison();
    const std::vector<uint32_t> order = RandomOrder(terms.length.slots, terms.length.calls, random);
    if (auto done = candidate.host().host.WatchBlock(order, candidate.timeout_s(), &clock); !done)
      return done;
  }
  if (const LibraryTime time = clock.Time(); time.samples > 0) watched->libraries = time;
  return {};
}

}  // namespace assay
