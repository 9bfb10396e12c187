// The `//!` lines of a device candidate. Whatever is accepted can be planned or refused with one
// clear line, and no launch is planned that CUDA cannot have.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "toolchain/device_program.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay;
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  const auto program = ParseDeviceProgram(source);
  if (!program) {
    ASSAY_CHECK(!program.error().empty());
    return 0;
  }
  ASSAY_CHECK(IsDeviceProgram(source));
  const DeviceTensor tensors[] = {
      {"x", {300, 1000}, 4, false}, {"eps", {}, 8, true}, {"out", {300, 1000}, 2, false}};
  const auto plan = PlanDeviceProgram(*program, tensors, {});
  if (!plan) {
    ASSAY_CHECK(plan.error().starts_with("line "));
    return 0;
  }
  ASSAY_CHECK(plan->launches.size() == program->launches.size());
  for (const PlannedLaunch& launch : plan->launches) {
    ASSAY_CHECK(uint64_t{launch.block[0]} * launch.block[1] * launch.block[2] <= 1024);
    for (const uint32_t blocks : launch.grid) ASSAY_CHECK(blocks >= 1);
    for (const PlannedArgument& argument : launch.arguments) {
      using Kind = PlannedArgument::Kind;
      if (argument.kind == Kind::kTensor) ASSAY_CHECK(argument.index < std::size(tensors));
      if (argument.kind == Kind::kScratch) ASSAY_CHECK(argument.index < plan->scratch_bytes.size());
      if (argument.kind == Kind::kTensorMap) ASSAY_CHECK(argument.index < plan->tensor_maps.size());
    }
  }
  return 0;
}
