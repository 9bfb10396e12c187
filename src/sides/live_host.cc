#include "sides/live_host.h"

#include <fmt/format.h>
#include <signal.h>

namespace assay {

HostResult<void> EnterBlocks(LiveHost& host, const LiveSlots& live, double timeout_s) {
  const uint32_t wanted = live.plan().slot_count;
  if (host.slot_count == wanted) return {};
  if (host.slot_count != 0)
    if (auto left = host.host.LeaveBlocks(timeout_s); !left) return left;
  host.slot_count = 0;
  if (auto entered = host.host.EnterBlocks(timeout_s); !entered) return entered;
  host.slot_count = wanted;
  return {};
}

std::string DescribeFault(const LiveHost& live_host, const LiveSlots& live) {
  const wire::Report& report = live_host.host.report();
  if (report.fault != wire::Fault::kSignal) return {};
  // Other signals carry no address of memory.
  if (report.fault_signal != SIGSEGV && report.fault_signal != SIGBUS) return {};
  // The host's addresses are not the judge's; it reports faults in its regions as region-relative
  // (docs/protocol.md).
  const uint64_t address = report.fault_address;
  const uint64_t stride = live.plan().input_stride;
  if (report.fault_region == wire::Region::kInputs && stride > 0) {
    for (uint32_t i = 0; i < live.plan().argument_count; ++i) {
      const wire::ArgumentSpec& argument = live.plan().arguments[i];
      const uint64_t within = address % stride;
      if (argument.role == wire::Role::kInput && within >= argument.offset &&
          within < argument.offset + argument.size_bytes)
        return fmt::format("it wrote to its input {}: inputs are read-only", argument.name);
    }
    return "it wrote beside its inputs: inputs are read-only";
  }
  if (report.fault_region == wire::Region::kWeights)
    return "it wrote to a parameter: parameters are read-only";
  return fmt::format("it touched address {:#x}, outside of every buffer", address);
}

}  // namespace assay
