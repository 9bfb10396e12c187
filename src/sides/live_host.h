// A host attached to the live slots, whichever side it is on.
#pragma once

#include <optional>
#include <string>

#include "hosts/host.h"
#include "sides/weights_match.h"
#include "values/live_slots.h"

namespace assay {

// A host with its own outputs, attached to the live slots.
struct LiveHost {
  Host host;
  HostOutputs outputs;
  WeightsMatch weights;  // of a Python candidate
  // The judge may read its memory: known before it loads what is judged, which could make itself
  // unreadable.
  bool may_be_read = false;
  uint32_t slot_count = 0;  // that it prepared for blocks; 0: it is not in blocks
};

// Of kLoad, for a Python host on the way of candidates: it imports and constructs alone, and needs
// no device for that. Another kLoad does the rest.
inline constexpr uint64_t kConstructAlone[] = {1};

// A host that prepares its slots for longer than this does so beside others' measurements, at the
// price of another wait for the turn at the device [s].
inline constexpr double kEnterBesideOthersS = 0.3;

// Has it in blocks, stopped, with as many slots prepared as the live plan has now: it enters them,
// or leaves them and enters anew.
HostResult<void> EnterBlocks(LiveHost& host, const LiveSlots& live, double timeout_s);

// A fault that the host reported, in words: "it wrote to its input x, which is read-only", "it went
// out of bounds: 20 bytes past the end of output out" or "it touched address 0x10, outside of every
// buffer"; empty when it reported none.
std::string DescribeFault(const LiveHost& host, const LiveSlots& live);
// The same, of a report that may say anything. `slot`: of the call that ran, if known.
std::string FaultText(const wire::Report& report, const wire::Plan& plan,
                      std::optional<uint32_t> slot);

}  // namespace assay
