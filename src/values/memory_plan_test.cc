#include "values/memory_plan.h"

#include <gtest/gtest.h>

#include "values/draw_kinds.h"

namespace assay {
namespace {

constexpr uint64_t kMib = 1 << 20, kGib = 1 << 30, kGigabyte = 1000'000'000;

CallBytes Activation(uint64_t bytes) { return {bytes, 0, bytes, 2 * bytes, bytes}; }

// A program beside the judge held all but 12 GiB of 140, of which slots were made for 140.
TEST(MemoryPlan, SlotsTakeTheirShareOfWhatIsFree) {
  const CallBytes call = Activation(8 * kMib);
  EXPECT_EQ(PlanMemory(call, 140 * kGib).slots, 256u);
  EXPECT_EQ(PlanMemory(call, 64 * kGib).slots, 128u);
  EXPECT_EQ(PlanMemory(call, 12 * kGib).slots, 24u);
}

TEST(MemoryPlan, LargeValuesHaveEightSlotsWhereTheyFit) {
  const CallBytes call = Activation(256 * kMib);
  EXPECT_EQ(PlanMemory(call, 140 * kGib).slots, 8u);
  EXPECT_EQ(PlanMemory(call, 24 * kGib).slots, 4u);
  EXPECT_EQ(PlanMemory(call, 6 * kGib).slots, 1u);
}

// Two kinds of draws came, the plan kept 16, and each draw was made again for each candidate.
TEST(MemoryPlan, SmallValuesKeepAllDrawsOfGateOne) {
  const MemoryPlan plan = PlanMemory(Activation(8 * kMib), 140 * kGib);
  EXPECT_GE(plan.with_truth, kDrawsMax);
  EXPECT_GE(plan.masters, 2 * kDrawsMax);
}

// KernelBench's ReLU has 6.4 GB of inputs. It was refused on a card of 80 GB.
TEST(MemoryPlan, OneOfEachServesAProblemThatFillsTheCard) {
  const CallBytes relu = Activation(6442 * kGigabyte / 1000);
  EXPECT_LE(LeastBytes(relu), 79 * kGigabyte);
  const MemoryPlan plan = PlanMemory(relu, 79 * kGigabyte);
  EXPECT_EQ(plan.masters, 1u);
  EXPECT_EQ(plan.with_truth, 1u);
  EXPECT_EQ(plan.slots, 1u);
}

// More than one of each takes no more than is spare.
TEST(MemoryPlan, PartsFitTogether) {
  for (uint64_t mib = 1; mib < 8000; mib += 1 + mib / 3)
    for (const uint64_t memory : {8 * kGib, 24 * kGib, 80 * kGib, 140 * kGib}) {
      const CallBytes call{mib * kMib, mib * kMib / 8, mib * kMib / 2, mib * kMib, mib * kMib};
      if (LeastBytes(call) > memory) continue;
      const MemoryPlan plan = PlanMemory(call, memory);
      const uint64_t more = (plan.masters - 1) * (call.inputs + call.outputs) +
                            (plan.with_truth - 1) * call.truth +
                            (plan.slots - 1) * (call.inputs + call.weights + 3 * call.outputs);
      EXPECT_LE(LeastBytes(call) + more, memory + memory / 16) << mib << " MiB of " << memory;
    }
}

// A judge that is alone on a card leaves others what it cannot use.
TEST(MemoryPlan, SmallValuesTakeAPartOfTheCard) {
  const uint64_t small = PlannedBytes(Activation(8 * kMib), 140 * kGib);
  EXPECT_GT(small, 40 * kGib);
  EXPECT_LT(small, 75 * kGib);
  EXPECT_GT(PlannedBytes(Activation(6 * kGib), 140 * kGib), LeastBytes(Activation(6 * kGib)));
}

}  // namespace
}  // namespace assay
