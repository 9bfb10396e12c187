#include "rules/draw_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::DrawKind;

constexpr DrawKind kKinds[] = {DrawKind::kOrdinary, DrawKind::kOrdinary, DrawKind::kLargeOffset,
                               DrawKind::kTinyScale, DrawKind::kTies};

TEST(DrawsLeftOut, NoneWhereAllFit) {
  EXPECT_THAT(DrawsLeftOut(kKinds, 1, 5), IsEmpty());
  EXPECT_THAT(DrawsLeftOut(kKinds, 1000, 0), IsEmpty());
  EXPECT_THAT(DrawsLeftOut({}, 1000, 1), IsEmpty());
}

TEST(DrawsLeftOut, KindsThatFailMostStayLongest) {
  EXPECT_THAT(DrawsLeftOut(kKinds, 1, 4.5), ElementsAre(1));
  EXPECT_THAT(DrawsLeftOut(kKinds, 1, 3.5), ElementsAre(1, 3));
  EXPECT_THAT(DrawsLeftOut(kKinds, 1, 2), ElementsAre(1, 3, 4));
}

TEST(DrawsLeftOut, TwoAreMadeHoweverLongOneTakes) {
  EXPECT_THAT(DrawsLeftOut(kKinds, 1000, 1), ElementsAre(1, 3, 4));
  const DrawKind integers[] = {DrawKind::kOrdinary, DrawKind::kOrdinary, DrawKind::kOrdinary};
  EXPECT_THAT(DrawsLeftOut(integers, 1000, 1), ElementsAre(2));
}

}  // namespace
}  // namespace assay
