#include "values/slot_layout.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

namespace assay {
namespace {

using wire::ArgumentSpec;
using wire::DType;
using wire::Role;

ArgumentSpec Tensor(const char* name, Role role, DType dtype, int64_t count) {
  ArgumentSpec argument{};
  std::strncpy(argument.name, name, sizeof argument.name - 1);
  argument.role = role;
  argument.kind = wire::Kind::kTensor;
  argument.dtype = dtype;
  argument.rank = 1;
  argument.shape[0] = count;
  argument.size_bytes = static_cast<uint64_t>(count) * wire::ElementBytes(dtype);
  return argument;
}

constexpr uint64_t kGuard = 0x0123456789ABCDEF;

class SlotsTest : public ::testing::Test {
 protected:
  SlotsTest() {
    ProblemDescription description;
    description.arguments = {Tensor("x", Role::kInput, DType::kFloat32, 100),
                             Tensor("w", Role::kParameter, DType::kFloat64, 7),
                             Tensor("out", Role::kOutput, DType::kFloat32, 33),
                             Tensor("index", Role::kOutput, DType::kInt64, 5),
                             Tensor("nothing", Role::kOutput, DType::kFloat32, 0)};
    plan_ = std::make_unique<wire::Plan>(LayOutSlots(description).value());
    plan_->slot_count = 3;
    // Slots start on lines, as in the shared regions.
    memory_.resize(3 * plan_->output_stride + 64);
    outputs_ = memory_.data() + (64 - reinterpret_cast<uintptr_t>(memory_.data()) % 64);
    PoisonOutputs(*plan_, outputs_, 3, kGuard);
  }

  std::byte* Output(uint32_t slot, uint32_t argument) {
    return outputs_ + slot * plan_->output_stride + plan_->arguments[argument].offset;
  }

  std::unique_ptr<wire::Plan> plan_;
  std::vector<std::byte> memory_;
  std::byte* outputs_ = nullptr;
};

TEST_F(SlotsTest, TensorsAreAlignedAndApartByGuards) {
  for (uint32_t i = 0; i < plan_->argument_count; ++i)
    EXPECT_EQ(plan_->arguments[i].offset % 64, 0u);
  EXPECT_GE(plan_->arguments[2].offset, kGuardBytes);
  EXPECT_GE(plan_->arguments[3].offset, plan_->arguments[2].offset + 33 * 4 + kGuardBytes);
  EXPECT_GE(plan_->output_stride, plan_->arguments[4].offset + kGuardBytes);
  EXPECT_EQ(plan_->output_stride % 64, 0u);
  EXPECT_EQ(TensorBytes(*plan_, Role::kOutput), 33u * 4 + 5 * 8);
}

TEST_F(SlotsTest, PoisonIsNanForFloatsAndUnlikelyForIntegers) {
  float value;
  std::memcpy(&value, Output(1, 2), sizeof value);
  EXPECT_NE(value, value);
  int64_t index;
  std::memcpy(&index, Output(1, 3), sizeof index);
  EXPECT_EQ(static_cast<uint64_t>(index), 0xA5A5A5A5A5A5A5A5);
}

TEST_F(SlotsTest, FreshGuardsAreWholeAndSlotsUntouched) {
  const uint32_t slots[] = {0, 1, 2};
  EXPECT_FALSE(FindGuardDamage(*plan_, outputs_, slots, kGuard));
  for (const uint32_t slot : slots) EXPECT_TRUE(SlotIsUntouched(*plan_, outputs_, slot, kGuard));
}

TEST_F(SlotsTest, AByteJustPastAnOutputIsFoundAndNamed) {
  Output(1, 2)[33 * 4] ^= std::byte{1};
  const uint32_t damaged[] = {0, 1}, other[] = {0, 2};
  const auto damage = FindGuardDamage(*plan_, outputs_, damaged, kGuard);
  ASSERT_TRUE(damage);
  EXPECT_EQ(damage->slot, 1u);
  EXPECT_EQ(damage->output, "out");
  EXPECT_EQ(damage->distance_bytes, 1);
  EXPECT_FALSE(FindGuardDamage(*plan_, outputs_, other, kGuard));
}

// Fifteen floats past the end were said to be one byte.
TEST_F(SlotsTest, AWriteIsMeasuredToItsEnd) {
  for (int byte = 0; byte < 60; ++byte) Output(1, 2)[33 * 4 + byte] ^= std::byte{1};
  const uint32_t slots[] = {1};
  const auto damage = FindGuardDamage(*plan_, outputs_, slots, kGuard);
  ASSERT_TRUE(damage);
  EXPECT_EQ(damage->output, "out");
  EXPECT_EQ(damage->distance_bytes, 60);
}

TEST_F(SlotsTest, AByteJustBeforeAnOutputIsFoundAndNamed) {
  *(Output(2, 3) - 1) ^= std::byte{1};
  const uint32_t slots[] = {2};
  const auto damage = FindGuardDamage(*plan_, outputs_, slots, kGuard);
  ASSERT_TRUE(damage);
  EXPECT_EQ(damage->output, "index");
  EXPECT_EQ(damage->distance_bytes, -1);
}

TEST_F(SlotsTest, TheLastByteOfASlotIsGuardedToo) {
  outputs_[plan_->output_stride - 1] ^= std::byte{1};
  const uint32_t slots[] = {0};
  EXPECT_TRUE(FindGuardDamage(*plan_, outputs_, slots, kGuard));
}

TEST_F(SlotsTest, AWriteToASlotThatWasNotCalledIsSeen) {
  Output(0, 3)[39] = std::byte{0};
  EXPECT_FALSE(SlotIsUntouched(*plan_, outputs_, 0, kGuard));
}

TEST_F(SlotsTest, TheFirstTouchedByteOfASlotIsFound) {
  EXPECT_FALSE(FirstTouched(*plan_, outputs_, 1, kGuard));
  outputs_[2 * plan_->output_stride - 1] ^= std::byte{1};
  EXPECT_EQ(FirstTouched(*plan_, outputs_, 1, kGuard), plan_->output_stride - 1);
  Output(1, 3)[39] = std::byte{0};
  EXPECT_EQ(FirstTouched(*plan_, outputs_, 1, kGuard), plan_->arguments[3].offset + 39);
  Output(1, 2)[-1] ^= std::byte{1};
  EXPECT_EQ(FirstTouched(*plan_, outputs_, 1, kGuard), plan_->arguments[2].offset - 1);
}

TEST_F(SlotsTest, DistancesAreFromTheNearestArgument) {
  const auto out = static_cast<int64_t>(plan_->arguments[2].offset);
  const auto index = static_cast<int64_t>(plan_->arguments[3].offset);
  const auto text = [&](int64_t offset) { return DistanceText(*plan_, Role::kOutput, offset); };
  EXPECT_EQ(text(out - 4), "4 bytes before the start of output out");
  EXPECT_EQ(text(-100000), fmt::format("{} bytes before the start of output out", out + 100000));
  EXPECT_EQ(text(out + 131), "byte 131 of output out");
  EXPECT_EQ(text(out + 132), "1 byte past the end of output out");
  EXPECT_EQ(text(index + 40 + 7), "8 bytes past the end of output index");
  EXPECT_THAT(text(1 << 20), ::testing::EndsWith(" past the end of output nothing"));
  EXPECT_EQ(DistanceText(*plan_, Role::kParameter, 0),
            fmt::format("{} bytes before the start of parameter w", plan_->arguments[1].offset));
  plan_->argument_count = 0;
  EXPECT_EQ(text(0), "");
}

TEST_F(SlotsTest, ASampleHoldsUntilALineOfItChanges) {
  const uint32_t slots[] = {0, 1};
  const auto sample = OutputSample::Take(*plan_, outputs_, slots, 256, 1);
  EXPECT_TRUE(sample.StillHolds());
  std::memset(Output(1, 2), 0, 33 * 4);
  EXPECT_FALSE(sample.StillHolds());
}

TEST_F(SlotsTest, CopiesOfAnySizeAreWhole) {
  std::vector<std::byte> source(300), target(400);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i);
  for (const size_t offset : {0u, 1u, 16u})
    for (const size_t size : {0u, 1u, 15u, 16u, 17u, 255u, 300u}) {
      std::fill(target.begin(), target.end(), std::byte{0xEE});
      CopyPastCaches(target.data() + offset, source.data(), size);
      EXPECT_EQ(std::memcmp(target.data() + offset, source.data(), size), 0);
      EXPECT_EQ(target[offset + size], std::byte{0xEE});
    }
}

TEST(LayOutSlots, RefusesMoreArgumentsThanTheProtocolCarries) {
  ProblemDescription description;
  description.arguments.assign(wire::kArgumentsMax + 1,
                               Tensor("x", Role::kInput, DType::kFloat32, 1));
  EXPECT_FALSE(LayOutSlots(description));
}

TEST(Descriptions, WhatFollowsFromItsShapeIsSound) {
  EXPECT_TRUE(IsSound(Tensor("x", Role::kInput, DType::kFloat32, 100)));
  EXPECT_TRUE(IsSound(Tensor("nothing", Role::kOutput, DType::kBool, 0)));
  ArgumentSpec number{};
  number.role = Role::kInput;
  number.kind = wire::Kind::kFloat;
  number.size_bytes = 8;
  EXPECT_TRUE(IsSound(number));
}

// Found as the fuzzers were written: a number among the outputs has no element size, by which the
// layout divides; a role that the wire does not define got no place and kept whatever offset the
// host had sent.
TEST(Descriptions, WhatTheWireDoesNotDefineIsNotSound) {
  ArgumentSpec number{};
  number.kind = wire::Kind::kInt;
  number.size_bytes = 8;
  for (const Role role : {Role::kOutput, Role::kParameter, Role{0}, Role{77}}) {
    number.role = role;
    EXPECT_FALSE(IsSound(number)) << static_cast<int>(role);
  }
  number.role = Role::kInput;
  number.kind = wire::Kind{9};
  EXPECT_FALSE(IsSound(number));
  const ArgumentSpec sound = Tensor("x", Role::kOutput, DType::kFloat32, 100);
  ArgumentSpec argument = sound;
  argument.role = Role{4};
  EXPECT_FALSE(IsSound(argument));
  argument = sound;
  argument.dtype = DType{99};
  EXPECT_FALSE(IsSound(argument));
  argument = sound;
  argument.size_bytes += 4;
  EXPECT_FALSE(IsSound(argument));
  argument = sound;
  argument.shape[0] = -1;
  EXPECT_FALSE(IsSound(argument));
  argument = sound;
  argument.rank = wire::kRankMax + 1;
  EXPECT_FALSE(IsSound(argument));
  argument = sound;
  std::memset(argument.name, 'x', sizeof argument.name);
  EXPECT_FALSE(IsSound(argument));
}

// x and out, and a cache that forward changes.
class ChangedInputsTest : public ::testing::Test {
 protected:
  ChangedInputsTest() {
    description_.arguments = {Tensor("x", Role::kInput, DType::kFloat32, 9),
                              Tensor("cache", Role::kInput, DType::kFloat32, 40),
                              Tensor("out", Role::kOutput, DType::kFloat32, 5),
                              Tensor("cache_after", Role::kOutput, DType::kFloat32, 40)};
    description_.arguments[1].twin = 4;
    description_.arguments[3].twin = 2;
  }
  ProblemDescription description_;
};

TEST_F(ChangedInputsTest, TwinsArePairsOfOneShapeThatStandLast) {
  const auto sound_after = [&](auto change) {
    auto arguments = description_.arguments;
    change(arguments);
    return TwinsAreSound(arguments);
  };
  EXPECT_TRUE(sound_after([](auto&) {}));
  EXPECT_FALSE(sound_after([](auto& all) { all[1].twin = 0; }));
  EXPECT_FALSE(sound_after([](auto& all) { all[1].twin = 9; }));
  EXPECT_FALSE(sound_after([](auto& all) { all[0].twin = 4; }));
  EXPECT_FALSE(sound_after([](auto& all) { all[3].dtype = DType::kInt32; }));
  EXPECT_FALSE(sound_after([](auto& all) { all[3].shape[0] = 39; }));
  EXPECT_FALSE(sound_after([](auto& all) {
    std::swap(all[2], all[3]);
    all[1].twin = 3;
  }));
}

TEST_F(ChangedInputsTest, TheyLieAmongTheOutputsAndChangesShow) {
  const auto plan = std::make_unique<wire::Plan>(LayOutSlots(description_).value());
  plan->slot_count = 1;
  EXPECT_EQ(wire::PassedCount(*plan), 3u);
  EXPECT_EQ(&wire::PlaceOf(*plan, plan->arguments[1]), &plan->arguments[3]);
  EXPECT_EQ(&wire::PlaceOf(*plan, plan->arguments[0]), &plan->arguments[0]);
  std::vector<std::byte> inputs(plan->input_stride, std::byte{7}), memory(plan->output_stride + 64);
  std::byte* outputs = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64);
  PoisonOutputs(*plan, outputs, 1, kGuard);
  EXPECT_FALSE(ChangedInputsStand(*plan, inputs.data(), outputs));
  LayChangedInputs(*plan, inputs.data(), outputs);
  EXPECT_TRUE(ChangedInputsStand(*plan, inputs.data(), outputs));
  EXPECT_TRUE(SlotIsUntouched(*plan, outputs, 0, kGuard));
  const uint32_t slots[] = {0};
  using enum OutputSample::Of;
  const auto of_all = OutputSample::Take(*plan, outputs, slots, 64, 1, kAll);
  const auto of_changed = OutputSample::Take(*plan, outputs, slots, 64, 1, kChangedInputs);
  outputs[plan->arguments[2].offset] = std::byte{0};
  EXPECT_FALSE(of_all.StillHolds());
  EXPECT_TRUE(of_changed.StillHolds());
  EXPECT_FALSE(SlotIsUntouched(*plan, outputs, 0, kGuard));
  for (uint64_t i = 0; i < plan->arguments[3].size_bytes; ++i)
    outputs[plan->arguments[3].offset + i] = std::byte{8};
  EXPECT_FALSE(of_changed.StillHolds());
  EXPECT_FALSE(ChangedInputsStand(*plan, inputs.data(), outputs));
}

// Found as the fuzzers were written: sizes that are sound one by one add up past 2^64, and a slot's
// stride came out smaller than its tensors.
TEST(Descriptions, SumsThatNoProcessCanAddressAreRefused) {
  ProblemDescription description;
  for (int i = 0; i < 2000; ++i)
    description.arguments.push_back(Tensor("x", Role::kInput, DType::kFloat64, int64_t{1} << 43));
  const auto plan = LayOutSlots(description);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().kind, ErrorKind::kUsage);
  EXPECT_FALSE(IsSound(Tensor("x", Role::kInput, DType::kFloat64, int64_t{1} << 60)));
}

}  // namespace
}  // namespace assay
