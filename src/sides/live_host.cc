#include "sides/live_host.h"

#include <fmt/format.h>
#include <signal.h>

#include <cstdlib>

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

namespace {

struct FaultPlace {
  wire::Role role;
  uint64_t stride;
};

// The memory of a region; nullopt: its addresses say nothing.
std::optional<FaultPlace> PlaceOf(wire::Region region, const wire::Plan& plan) {
  if (region == wire::Region::kInputs) return FaultPlace{wire::Role::kInput, plan.input_stride};
  if (region == wire::Region::kOutputs) return FaultPlace{wire::Role::kOutput, plan.output_stride};
  if (region == wire::Region::kWeights)
    return FaultPlace{wire::Role::kParameter, plan.weights_stride};
  return std::nullopt;
}

// Whether PyTorch's normalisations write to a parameter of this name in training mode.
bool IsRunningStatistic(std::string_view name) {
  return name.ends_with("running_mean") || name.ends_with("running_var") ||
         name.ends_with("num_batches_tracked");
}

// A fault in memory that is read-only; "": it lies elsewhere.
std::string ReadOnlyText(const wire::Plan& plan, const FaultPlace& place, uint64_t address) {
  if (place.role == wire::Role::kOutput || place.stride == 0 ||
      address >= plan.slot_count * place.stride)
    return {};
  const bool is_input = place.role == wire::Role::kInput;
  const uint64_t within = address % place.stride;
  for (uint32_t i = 0; i < plan.argument_count; ++i) {
    const wire::ArgumentSpec& argument = plan.arguments[i];
    if (argument.role == place.role && within >= argument.offset &&
        within < argument.offset + argument.size_bytes)
      return fmt::format(
          "it wrote to its {} {}, which is read-only, as the reference does not change it: {}",
          is_input ? "input" : "parameter", argument.name,
          !is_input && IsRunningStatistic(argument.name)
              ? "its module is in training mode: call self.eval() in the constructor"
              : "work on a copy");
  }
  return fmt::format("it wrote beside its {0}s: {0}s are read-only",
                     is_input ? "input" : "parameter");
}

}  // namespace

std::string FaultText(const wire::Report& report, const wire::Plan& plan,
                      std::optional<uint32_t> slot) {
  if (report.fault != wire::Fault::kSignal) return {};
  // Other signals carry no address of memory.
  if (report.fault_signal != SIGSEGV && report.fault_signal != SIGBUS) return {};
  // The host's addresses are not the judge's; it reports faults in its regions, and beside them, as
  // region-relative (docs/protocol.md).
  const uint64_t address = report.fault_address;
  const auto place = PlaceOf(report.fault_region, plan);
  if (!place) return fmt::format("it touched address {:#x}, outside of every buffer", address);
  if (std::string text = ReadOnlyText(plan, *place, address); !text.empty()) return text;
  const auto from_slot = static_cast<int64_t>(address - slot.value_or(0) * place->stride);
  if (!slot || std::abs(from_slot / 2) > static_cast<int64_t>(kRegionBytesMax))
    return "it went out of bounds";
  return "it went out of bounds: " + DistanceText(plan, place->role, from_slot);
}

std::string DescribeFault(const LiveHost& live_host, const LiveSlots& live) {
  const wire::Report& report = live_host.host.report();
  return FaultText(report, live.plan(), live_host.host.SlotOfCall(report.fault_call));
}

}  // namespace assay
