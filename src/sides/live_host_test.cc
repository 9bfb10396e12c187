#include "sides/live_host.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <memory>

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using wire::Region;
using wire::Role;

wire::ArgumentSpec Argument(const char* name, Role role, uint64_t offset, uint64_t size_bytes) {
  wire::ArgumentSpec argument{};
  std::string_view(name).copy(argument.name, wire::kNameBytes - 1);
  argument.role = role;
  argument.offset = offset;
  argument.size_bytes = size_bytes;
  return argument;
}

class FaultTextTest : public ::testing::Test {
 protected:
  FaultTextTest() {
    plan_->arguments[plan_->argument_count++] = Argument("x", Role::kInput, 1024, 100);
    plan_->arguments[plan_->argument_count++] = Argument("w", Role::kParameter, 1024, 100);
    plan_->arguments[plan_->argument_count++] = Argument("out", Role::kOutput, 1024, 12);
    plan_->input_stride = plan_->output_stride = plan_->weights_stride = 4416;
    plan_->slot_count = 2;
    report_->fault = wire::Fault::kSignal;
    report_->fault_signal = SIGSEGV;
  }

  std::string At(Region region, uint64_t address, std::optional<uint32_t> slot = 1) {
    report_->fault_region = region;
    report_->fault_address = address;
    return FaultText(*report_, *plan_, slot);
  }

  std::unique_ptr<wire::Plan> plan_ = std::make_unique<wire::Plan>();
  std::unique_ptr<wire::Report> report_ = std::make_unique<wire::Report>();
};

TEST_F(FaultTextTest, NamesWhatIsReadOnly) {
  EXPECT_EQ(At(Region::kInputs, 4416 + 1024 + 99),
            "it wrote to its input x, which is read-only, as the reference does not change it: "
            "work on a copy");
  EXPECT_EQ(At(Region::kWeights, 1024, std::nullopt),
            "it wrote to its parameter w, which is read-only, as the reference does not change it: "
            "work on a copy");
  std::string_view("bn_running_mean").copy(plan_->arguments[1].name, wire::kNameBytes - 1);
  EXPECT_EQ(At(Region::kWeights, 1024, std::nullopt),
            "it wrote to its parameter bn_running_mean, which is read-only, as the reference does "
            "not change it: its module is in training mode: call self.eval() in the constructor");
  EXPECT_EQ(At(Region::kInputs, 1023), "it wrote beside its inputs: inputs are read-only");
}

TEST_F(FaultTextTest, SaysHowFarOutOfBoundsItWas) {
  EXPECT_EQ(At(Region::kOutputs, 4416 + 1024 + 20000),
            "it went out of bounds: 19989 bytes past the end of output out");
  EXPECT_EQ(At(Region::kOutputs, uint64_t{0} - 100, 0),
            "it went out of bounds: 1124 bytes before the start of output out");
  EXPECT_THAT(At(Region::kInputs, 2 * 4416 + 10, 1), HasSubstr("past the end of input x"));
  EXPECT_EQ(At(Region::kOutputs, 20000, std::nullopt), "it went out of bounds");
}

// The host is not trusted.
TEST_F(FaultTextTest, AnyReportHasAText) {
  EXPECT_THAT(At(static_cast<Region>(77), 16), HasSubstr("touched address 0x10"));
  for (const uint64_t address : {uint64_t{1} << 63, ~uint64_t{0} >> 1, uint64_t{1} << 62})
    for (const uint32_t slot : {0u, ~0u})
      EXPECT_THAT(At(Region::kOutputs, address, slot), HasSubstr("out of bounds"));
  plan_->slot_count = 0;
  plan_->weights_stride = 0;
  EXPECT_THAT(At(Region::kWeights, 5), HasSubstr("out of bounds"));
  report_->fault_signal = SIGFPE;
  EXPECT_THAT(At(Region::kInputs, 1024), IsEmpty());
  report_->fault = wire::Fault::kNone;
  EXPECT_THAT(At(Region::kInputs, 1024), IsEmpty());
}

}  // namespace
}  // namespace assay
