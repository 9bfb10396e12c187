#include "session/host_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::Not;

constexpr bool kAllBuilt[] = {true, true, true, true, true, true};
constexpr auto kCorrectness = HostUse::kCorrectness;

TEST(HostPlan, OnACpuTheNextCandidateImportsBesideTheOneInHand) {
  EXPECT_THAT(PlanHosts({}, 0, kAllBuilt),
              ElementsAre(HostsToBegin{0, kCorrectness}, HostsToBegin{1, kCorrectness, 1}));
}

TEST(HostPlan, TheLastCandidateHasNobodyAfterIt) {
  EXPECT_THAT(PlanHosts({}, 5, kAllBuilt), ElementsAre(HostsToBegin{5, kCorrectness}));
}

TEST(HostPlan, NothingBeginsForACandidateThatDidNotBuild) {
  constexpr bool kBuilt[] = {true, false, true};
  EXPECT_THAT(PlanHosts({}, 0, kBuilt), ElementsAre(HostsToBegin{0, kCorrectness}));
}

TEST(HostPlan, WhereMemoryIsShortHostsStartOneByOne) {
  const HostPlanFacts facts{
      .on_device = true, .alone = true, .has_other_size = true, .expects_speed = true};
  EXPECT_THAT(PlanHosts(facts, 0, kAllBuilt), ElementsAre(HostsToBegin{0, kCorrectness}));
}

TEST(HostPlan, OnADeviceEveryUseBeginsAtOnce) {
  const HostPlanFacts facts{.on_device = true, .has_other_size = true, .expects_speed = true};
  EXPECT_THAT(
      PlanHosts(facts, 0, kAllBuilt),
      ElementsAre(HostsToBegin{0, kCorrectness}, HostsToBegin{0, HostUse::kOtherSize},
                  HostsToBegin{0, HostUse::kPairs, 0, kPairsMin}, HostsToBegin{1, kCorrectness, 1},
                  HostsToBegin{1, HostUse::kOtherSize, 1}));
}

TEST(HostPlan, AfterACandidateThatWasWrongNoHostsForPairsBegin) {
  HostPlanFacts facts{.on_device = true, .expects_speed = true};
  const auto pairs = Contains(Field(&HostsToBegin::use, HostUse::kPairs));
  EXPECT_THAT(PlanHosts(facts, 0, kAllBuilt), pairs);
  facts.expects_speed = false;
  EXPECT_THAT(PlanHosts(facts, 0, kAllBuilt), Not(pairs));
  facts.expects_speed = facts.correctness_only = true;
  EXPECT_THAT(PlanHosts(facts, 0, kAllBuilt), Not(pairs));
}

TEST(HostPlan, ManyCoresImportForSeveralCandidatesToCome) {
  const HostPlanFacts facts{.on_device = true, .imports = true, .usable_cores = kManyCores};
  EXPECT_THAT(PlanHosts(facts, 1, kAllBuilt),
              ElementsAre(HostsToBegin{1, kCorrectness}, HostsToBegin{2, kCorrectness, 1},
                          HostsToBegin{3, kCorrectness, 2}, HostsToBegin{4, kCorrectness, 3},
                          HostsToBegin{5, kCorrectness, 4}));
}

}  // namespace
}  // namespace assay
