// Tests slots on a device, over the fake driver.
#include "values/device_slots.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/clock.h"
#include "base/files.h"
#include "values/slot_layout.h"
#include "wire/write_device_image.h"

namespace assay {
namespace {

constexpr uint64_t kGuard = 0x1122334455667788;
constexpr uint32_t kCapacity = 5;

wire::ArgumentSpec Argument(const char* name, wire::Role role, wire::DType dtype,
                            std::vector<int64_t> shape) {
  wire::ArgumentSpec spec{};
  std::strncpy(spec.name, name, wire::kNameBytes - 1);
  spec.role = role;
  spec.kind = wire::Kind::kTensor;
  spec.dtype = dtype;
  spec.rank = static_cast<uint32_t>(shape.size());
  spec.size_bytes = wire::ElementBytes(dtype);
  for (size_t i = 0; i < shape.size(); ++i) {
    spec.shape[i] = shape[i];
    spec.size_bytes *= static_cast<uint64_t>(shape[i]);
  }
  return spec;
}

class DeviceSlotsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto gpu = Gpu::Open(ASSAY_BUILD_DIRECTORY "/tests/fake_cuda/libcuda.so.1");
    ASSERT_TRUE(gpu) << gpu.error().message;
    std::vector<std::string> names;
    for (const char* name : JudgeKernelNames()) names.push_back(fmt::format("{}_emulated", name));
    const auto library =
        ReadFile(ASSAY_BUILD_DIRECTORY "/tests/fake_cuda/judge_kernels.so", 16 << 20);
    ASSERT_TRUE(library);
    auto device = JudgeDevice::Open(std::move(*gpu), wire::WriteDeviceImage(names, *library));
    ASSERT_TRUE(device) << device.error().message;
    device_ = std::move(*device);
    Open({
        Argument("x", wire::Role::kInput, wire::DType::kFloat32, {3, 7}),
        Argument("out", wire::Role::kOutput, wire::DType::kFloat32, {3, 7}),
        Argument("out1", wire::Role::kOutput, wire::DType::kUInt8, {13}),
        Argument("weight", wire::Role::kParameter, wire::DType::kFloat32, {11}),
    });
  }
  void Open(std::vector<wire::ArgumentSpec> arguments) {
    ProblemDescription description;
    description.arguments = std::move(arguments);
    for (wire::ArgumentSpec& argument : description.arguments)
      argument.varies = argument.role == wire::Role::kParameter ? 1 : 0;
    auto plan = LayOutSlots(description);
    ASSERT_TRUE(plan);
    plan_ = *plan;
    weights_ = std::make_shared<const VariedWeights>(
        plan_, std::vector<std::byte>(plan_.weights_stride, std::byte{0x39}));
    auto slots = DeviceSlots::Create(*device_, plan_, weights_, kCapacity, kGuard);
    ASSERT_TRUE(slots) << slots.error().message;
    slots_.emplace(std::move(*slots));
    auto outputs = slots_->CreateOutputs();
    ASSERT_TRUE(outputs);
    outputs_.emplace(std::move(*outputs));
    ASSERT_TRUE(slots_->Poison(*outputs_, 0, kCapacity));
  }
  // The fake's memory is this process's own.
  std::byte* Output(uint32_t slot) {
    return reinterpret_cast<std::byte*>(outputs_->address()) + slot * plan_.output_stride;
  }
  uint64_t EndOf(int argument) const {
    return plan_.arguments[argument].offset + plan_.arguments[argument].size_bytes;
  }

  std::shared_ptr<const VariedWeights> weights_;
  std::unique_ptr<JudgeDevice> device_;
  wire::Plan plan_;
  std::optional<DeviceSlots> slots_;
  std::optional<DeviceRegion> outputs_;
};

TEST_F(DeviceSlotsTest, AJudgementMayTakeWhatIsFreeBesideContexts) {
  ::setenv("FAKE_CUDA_FREE_GIB", "12", 1);
  EXPECT_EQ(device_->BytesForValues(), uint64_t{8} << 30);
  // Never 0, which would be no limit at all.
  ::setenv("FAKE_CUDA_FREE_GIB", "1", 1);
  EXPECT_EQ(device_->BytesForValues(), 1u);
  ::unsetenv("FAKE_CUDA_FREE_GIB");
}

// On a GPU of 8 GiB.
class DeviceSlotsReserveTest : public DeviceSlotsTest {
 protected:
  DeviceSlotsReserveTest() : folder_(*TemporaryFolder::Create()) {
    ::setenv("XDG_STATE_HOME", folder_.path().c_str(), 1);
    ::setenv("FAKE_CUDA_FREE_GIB", "8", 1);
  }
  ~DeviceSlotsReserveTest() override {
    ::unsetenv("XDG_STATE_HOME");
    ::unsetenv("FAKE_CUDA_FREE_GIB");
  }
  Result<MemoryForValues> Reserve(uint64_t input_bytes, Sharing sharing) {
    return device_->ReserveFor({input_bytes, 0, 0, 0, 0}, sharing, {});
  }

  const TemporaryFolder folder_;
};

TEST_F(DeviceSlotsReserveTest, AProblemTakesItsContextsToo) {
  const auto first = Reserve(1 << 20, {.sharers = 8});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->values_bytes, LeastBytes({1 << 20, 0, 0, 0, 0}));
  EXPECT_EQ(first->reserved.bytes(), first->values_bytes + (uint64_t{4} << 30));
}

TEST_F(DeviceSlotsReserveTest, OneAlonePlansWithAllAndKeepsWhatItsPlanTakes) {
  const auto first = Reserve(1 << 10, {.sharers = 1});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->values_bytes, uint64_t{4} << 30);
  EXPECT_LT(first->reserved.bytes(), uint64_t{5} << 30);
  // A call that it could not estimate may need all.
  const TemporaryFolder other = *TemporaryFolder::Create();
  ::setenv("XDG_STATE_HOME", other.path().c_str(), 1);
  EXPECT_EQ(Reserve(0, {.sharers = 1})->reserved.bytes(), uint64_t{8} << 30);
}

TEST_F(DeviceSlotsReserveTest, OneWithinAnotherNeverWaits) {
  const auto outer = Reserve(1 << 20, {.sharers = 8});
  ASSERT_TRUE(outer);
  const auto within = Reserve(1 << 10, {.sharers = 8, .within_bytes = 1 << 20});
  ASSERT_TRUE(within);
  EXPECT_EQ(within->values_bytes, uint64_t{1} << 20);
  EXPECT_EQ(within->reserved.bytes(), 0u);
  const auto larger = Reserve(1 << 20, {.sharers = 8, .within_bytes = 1 << 20});
  ASSERT_FALSE(larger);
  EXPECT_EQ(larger.error().code, ErrorCode::kTooLarge);
}

TEST_F(DeviceSlotsTest, PoisonIsThatOfTheProcessorsSlots) {
  std::vector<std::byte> expected(plan_.output_stride);
  PoisonSlot(plan_, expected.data(), 0, kGuard);
  for (uint32_t slot = 0; slot < kCapacity; ++slot)
    EXPECT_EQ(std::memcmp(Output(slot), expected.data(), expected.size()), 0) << slot;
}

TEST_F(DeviceSlotsTest, ChangedInputsLieAmongTheOutputs) {
  auto cache = Argument("cache", wire::Role::kInput, wire::DType::kFloat32, {4, 8});
  auto after = Argument("cache_after", wire::Role::kOutput, wire::DType::kFloat32, {4, 8});
  cache.twin = 3;
  after.twin = 1;
  outputs_.reset();
  slots_.reset();
  Open({cache, Argument("out", wire::Role::kOutput, wire::DType::kFloat32, {4}), after});
  std::vector<std::byte> master(plan_.input_stride, std::byte{5});
  ASSERT_TRUE(slots_->FillInput(3, reinterpret_cast<cuda::Pointer>(master.data())));
  ASSERT_TRUE(slots_->Poison(*outputs_, 0, kCapacity));
  const uint64_t begin = plan_.arguments[2].offset;
  EXPECT_EQ(Output(3)[begin], std::byte{5});
  EXPECT_EQ(Output(3)[EndOf(2) - 1], std::byte{5});
  const uint32_t called[] = {3};
  EXPECT_TRUE(*slots_->AreUntouched(*outputs_, called));
  EXPECT_TRUE(*slots_->GuardsStand(*outputs_, called));
  // They stay where they are, wherever results are.
  auto memory = slots_->CreateResults(LeftResultsBytes(plan_, kCapacity, 0));
  ASSERT_TRUE(memory);
  const uint64_t nowhere[] = {0};
  slots_->PlanLeft(*outputs_, called);
  ASSERT_TRUE(slots_->SampleLeft(*memory, memory->address(), nowhere));
  EXPECT_TRUE(*slots_->SampleStillHolds());
  Output(3)[EndOf(2) - 1] = std::byte{6};
  EXPECT_FALSE(*slots_->SampleStillHolds());
  EXPECT_FALSE(*slots_->AreUntouched(*outputs_, called));
}

TEST_F(DeviceSlotsTest, EveryByteThatIsWrittenShows) {
  const uint32_t all[] = {0, 1, 2, 3, 4}, others[] = {0, 1, 2, 4};
  EXPECT_TRUE(*slots_->AreUntouched(*outputs_, all));
  for (const uint64_t at :
       {uint64_t{0}, plan_.arguments[1].offset, EndOf(2) - 1, plan_.output_stride - 1}) {
    std::byte& byte = Output(3)[at];
    const std::byte before = byte;
    byte ^= std::byte{1};
    EXPECT_FALSE(*slots_->AreUntouched(*outputs_, all)) << at;
    EXPECT_TRUE(*slots_->AreUntouched(*outputs_, others)) << at;
    byte = before;
  }
}

TEST_F(DeviceSlotsTest, GuardsAreWhatLiesAroundOutputs) {
  const uint32_t slots[] = {1, 2};
  std::memset(Output(1) + plan_.arguments[1].offset, 5, plan_.arguments[1].size_bytes);
  std::memset(Output(2) + plan_.arguments[2].offset, 5, plan_.arguments[2].size_bytes);
  EXPECT_TRUE(*slots_->GuardsStand(*outputs_, slots));
  // One byte past outputs of 84 and of 13 bytes, and before the first.
  for (const uint64_t at : {EndOf(1), EndOf(2), plan_.arguments[1].offset - 1}) {
    std::byte& byte = Output(2)[at];
    const std::byte before = byte;
    byte ^= std::byte{0x80};
    EXPECT_FALSE(*slots_->GuardsStand(*outputs_, slots)) << at;
    byte = before;
  }
}

TEST_F(DeviceSlotsTest, OutputsThatChangeAfterTheBlockShow) {
  const uint32_t slots[] = {4};
  ASSERT_TRUE(slots_->PlanSample(*outputs_, slots) && slots_->TakeSample());
  EXPECT_TRUE(*slots_->SampleStillHolds());
  Output(4)[plan_.arguments[1].offset + 9] = std::byte{1};
  EXPECT_FALSE(*slots_->SampleStillHolds());
}

// A look that chose its lines once "done" was said gave what still ran time to end: a host that
// waited for all but its last calls was 1.2 times as fast.
TEST_F(DeviceSlotsTest, LinesAreChosenBeforeTheBlockAndCopiedAtItsEnd) {
  const uint32_t slots[] = {4};
  ASSERT_TRUE(slots_->PlanSample(*outputs_, slots));
  Output(4)[plan_.arguments[1].offset + 9] = std::byte{1};
  ASSERT_TRUE(slots_->TakeSample());
  EXPECT_TRUE(*slots_->SampleStillHolds());
  Output(4)[plan_.arguments[1].offset + 9] = std::byte{2};
  EXPECT_FALSE(*slots_->SampleStillHolds());
}

TEST_F(DeviceSlotsTest, InputsThatAreWrittenToShow) {
  std::vector<std::byte> master(plan_.input_stride, std::byte{7});
  ASSERT_TRUE(slots_->FillInput(3, reinterpret_cast<cuda::Pointer>(master.data())));
  const uint32_t slots[] = {3};
  EXPECT_TRUE(*slots_->InputsStand(slots));
  auto* input = reinterpret_cast<std::byte*>(slots_->inputs().address()) + 3 * plan_.input_stride;
  input[plan_.arguments[0].offset + 5] = std::byte{8};
  EXPECT_FALSE(*slots_->InputsStand(slots));
  ASSERT_TRUE(slots_->FillInput(3, reinterpret_cast<cuda::Pointer>(master.data())));
  EXPECT_TRUE(*slots_->InputsStand(slots));
}

TEST_F(DeviceSlotsTest, EachSlotHasItsOwnVersionOfTheWeights) {
  const uint32_t slots[] = {3, 1};
  const uint64_t versions[] = {5, 6};
  ASSERT_TRUE(slots_->FillWeights(slots, versions));
  const auto copy = [&](uint32_t slot) {
    return reinterpret_cast<std::byte*>(slots_->weights().address()) + slot * plan_.weights_stride;
  };
  std::vector<std::byte> expected = weights_->constructed();
  weights_->Write(5, false, expected.data());
  EXPECT_EQ(std::memcmp(copy(3), expected.data(), expected.size()), 0);
  EXPECT_NE(std::memcmp(copy(1), expected.data(), expected.size()), 0);
  EXPECT_TRUE(*slots_->InputsStand(slots));
  copy(1)[plan_.arguments[3].offset + 40] ^= std::byte{1};
  EXPECT_FALSE(*slots_->InputsStand(slots));
  ASSERT_TRUE(slots_->Clear(4));
  EXPECT_EQ(std::memcmp(copy(3), weights_->constructed().data(), expected.size()), 0);
  EXPECT_EQ(std::memcmp(copy(1), weights_->constructed().data(), expected.size()), 0);
}

TEST(DeviceSlots, AFlushThatTakesLongWasNotAlone) {
  EXPECT_FALSE(WasNotAlone(60'000, 60'000));
  EXPECT_FALSE(WasNotAlone(190'000, 60'000));
  EXPECT_TRUE(WasNotAlone(191'000, 60'000));
  EXPECT_FALSE(WasNotAlone(1'600'000, 1'000'000));
  EXPECT_TRUE(WasNotAlone(1'600'001, 1'000'000));
}

TEST_F(DeviceSlotsTest, ABlockWaitsForABoundedTimeWhileOthersUseTheMemory) {
  const auto flush_ns = [&] {
    const int64_t begin_ns = MonotonicNs();
    EXPECT_TRUE(slots_->FlushCaches());
    return MonotonicNs() - begin_ns;
  };
  ::setenv("FAKE_CUDA_EVENT_MS", "1.1", 1);
  EXPECT_GT(flush_ns(), 100'000'000);
  ::unsetenv("FAKE_CUDA_EVENT_MS");
}

TEST_F(DeviceSlotsTest, LinesOfEverySlotAreLookedAt) {
  // A small output: the sample holds all of it, in every slot that was called, and of no other.
  const uint32_t called[] = {0, 1, 2, 4};
  for (const uint32_t slot : called) {
    ASSERT_TRUE(slots_->PlanSample(*outputs_, called) && slots_->TakeSample());
    std::byte& byte = Output(slot)[EndOf(2) - 1];
    byte ^= std::byte{1};
    EXPECT_FALSE(*slots_->SampleStillHolds()) << slot;
    byte ^= std::byte{1};
  }
  ASSERT_TRUE(slots_->PlanSample(*outputs_, called) && slots_->TakeSample());
  Output(3)[plan_.arguments[1].offset] ^= std::byte{1};
  EXPECT_TRUE(*slots_->SampleStillHolds());
}

TEST_F(DeviceSlotsTest, ResultsThatWereLeftAreLookedAtAndCopiedWhereTheyLie) {
  auto memory = slots_->CreateResults(LeftResultsBytes(plan_, kCapacity, 0));
  ASSERT_TRUE(memory);
  auto* const bytes = reinterpret_cast<std::byte*>(memory->address());
  const uint64_t end = memory->size_bytes();
  // At odd places, and at the very end.
  const LeftResults::Piece left[] = {
      {3, memory->address() + 1001, 84, 3 * plan_.output_stride + plan_.arguments[1].offset},
      {3, memory->address() + end - 13, 13, 3 * plan_.output_stride + plan_.arguments[2].offset}};
  std::memset(bytes + 1001, 1, 84);
  std::memset(bytes + end - 13, 2, 13);
  // The host has it elsewhere in its own memory.
  const uint64_t theirs = uint64_t{1} << 40;
  const uint32_t called[] = {3};
  const uint64_t addresses[] = {theirs + 1001, theirs + end - 13};
  for (const uint64_t at : {uint64_t{1001}, uint64_t{1084}, end - 13, end - 1}) {
    slots_->PlanLeft(*outputs_, called);
    ASSERT_TRUE(slots_->SampleLeft(*memory, theirs, addresses));
    EXPECT_TRUE(*slots_->SampleStillHolds());
    const std::byte before = bytes[at];
    bytes[at] ^= std::byte{1};
    EXPECT_FALSE(*slots_->SampleStillHolds()) << at;
    bytes[at] = before;
  }
  // What lies elsewhere is not looked at.
  const uint64_t outside[] = {theirs - 1, theirs + end};
  ASSERT_TRUE(slots_->SampleLeft(*memory, theirs, outside));
  EXPECT_TRUE(*slots_->SampleStillHolds());
  const uint32_t written[] = {3}, others[] = {0, 1, 2, 4};
  ASSERT_TRUE(slots_->CopyLeft(*outputs_, left));
  EXPECT_TRUE(*slots_->GuardsStand(*outputs_, written));
  EXPECT_TRUE(*slots_->AreUntouched(*outputs_, others));
  EXPECT_EQ(std::memcmp(Output(3) + plan_.arguments[1].offset, bytes + 1001, 84), 0);
  EXPECT_EQ(std::memcmp(Output(3) + plan_.arguments[2].offset, bytes + end - 13, 13), 0);
  // Lines of slots are their own size again.
  ASSERT_TRUE(slots_->PlanSample(*outputs_, written) && slots_->TakeSample());
  EXPECT_TRUE(*slots_->SampleStillHolds());
  EXPECT_FALSE(slots_->AreUntouched(*outputs_, written).value());
}

TEST_F(DeviceSlotsTest, ASlotIsFetchedAsItIs) {
  std::memset(Output(2), 0x5A, plan_.output_stride);
  const auto fetched = slots_->Fetch(*outputs_, 2);
  ASSERT_TRUE(fetched);
  EXPECT_EQ(std::memcmp(*fetched, Output(2), plan_.output_stride), 0);
}

}  // namespace
}  // namespace assay
