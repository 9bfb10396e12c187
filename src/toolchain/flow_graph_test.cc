#include "toolchain/flow_graph.h"

#include <gmock/gmock.h>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

FlowStep Plain() { return {}; }
FlowStep May(size_t target) { return {target, true}; }  // a conditional jump
FlowStep Must(size_t target) { return {target, false}; }
FlowStep End() { return {std::nullopt, false}; }

TEST(FlowGraph, OfNestedLoopsTheInnerOneIsGiven) {
  EXPECT_THAT(InnermostLoops({Plain(), Plain(), May(1), May(0), End()}),
              ElementsAre(ElementsAre(1, 2)));
  EXPECT_THAT(InnermostLoops({Plain(), May(0), Plain(), May(2), End()}),
              UnorderedElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
  EXPECT_THAT(InnermostLoops({}), IsEmpty());
  EXPECT_THAT(InnermostLoops({May(0), End()}), ElementsAre(ElementsAre(0)));
}

// A loop that is entered at its condition, below its body.
TEST(FlowGraph, ALoopMayBeginBelowItsBody) {
  EXPECT_THAT(InnermostLoops({Must(3), Plain(), Plain(), May(1), End()}),
              ElementsAre(ElementsAre(1, 2, 3)));
}

TEST(FlowGraph, ARareBlockBehindTheCodeClosesNoLoop) {
  // 1 may jump to 4, which comes back to 2.
  EXPECT_THAT(InnermostLoops({Plain(), May(4), Plain(), End(), Plain(), Must(2)}), IsEmpty());
  // The same within a loop: what rarely runs is none of its instructions.
  EXPECT_THAT(InnermostLoops({Plain(), May(5), Plain(), May(0), End(), Plain(), Must(2)}),
              ElementsAre(ElementsAre(0, 1, 2, 3)));
  // It comes back to the loop's head.
  EXPECT_THAT(InnermostLoops({Plain(), May(4), May(0), End(), Plain(), Must(0)}),
              ElementsAre(ElementsAre(0, 1, 2)));
}

TEST(FlowGraph, WhatCannotBeReachedIsNoLoop) {
  EXPECT_THAT(InnermostLoops({Plain(), End(), Plain(), May(2), End()}), IsEmpty());
}

}  // namespace
}  // namespace assay
