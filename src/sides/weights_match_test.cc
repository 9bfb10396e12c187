#include "sides/weights_match.h"

#include <gmock/gmock.h>

#include <array>
#include <memory>
#include <string_view>

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using How = WeightsMatch::How;

std::unique_ptr<wire::Plan> PlanOf(std::initializer_list<const char*> parameters) {
  auto plan = std::make_unique<wire::Plan>();
  const auto add = [&](const char* name, wire::Role role) {
    wire::ArgumentSpec& argument = plan->arguments[plan->argument_count++];
    std::string_view(name).copy(argument.name, wire::kNameBytes - 1);
    argument.role = role;
    argument.dtype = wire::DType::kFloat32;
  };
  add("x", wire::Role::kInput);
  for (const char* name : parameters) add(name, wire::Role::kParameter);
  add("out", wire::Role::kOutput);
  return plan;
}

TEST(WeightsMatch, ReadsTheReplyOfAHost) {
  const auto plan = PlanOf({"a", "b", "c"});
  const std::array<uint64_t, 4> reply{0, 2, 2, 0b101};
  const WeightsMatch match = ReadWeightsMatch(reply, *plan);
  EXPECT_EQ(match.how, How::kByName);
  EXPECT_EQ(match.left_over, 2u);
  EXPECT_THAT(match.missing, ElementsAre("a", "c"));
  EXPECT_TRUE(match.differs());
}

TEST(WeightsMatch, WholeNumbersThatAreMissingDoNotMatter) {
  const auto plan = PlanOf({"a", "steps"});
  plan->arguments[2].dtype = wire::DType::kInt64;
  const std::array<uint64_t, 4> reply{0, 0, 1, 0b10}, more{0, 0, 2, 0b10};
  EXPECT_FALSE(ReadWeightsMatch(reply, *plan).differs());
  EXPECT_TRUE(ReadWeightsMatch(more, *plan).differs());
}

TEST(WeightsMatch, BelievesNoBitBeyondTheParameters) {
  const auto plan = PlanOf({"a"});
  const std::array<uint64_t, 4> reply{~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, ~uint64_t{1}};
  const WeightsMatch match = ReadWeightsMatch(reply, *plan);
  EXPECT_EQ(match.how, How::kByShape);
  EXPECT_THAT(match.missing, IsEmpty());
}

TEST(WeightsMatch, TheOrderIsAGuessWhereTwoHaveOneShape) {
  const auto plan = PlanOf({"a", "b"});
  const std::array<uint64_t, 4> by_order{1, 0, 0, 0}, by_name{0, 0, 0, 0};
  EXPECT_TRUE(ReadWeightsMatch(by_order, *plan).differs());
  EXPECT_FALSE(ReadWeightsMatch(by_name, *plan).differs());
  plan->arguments[1].rank = 1;
  plan->arguments[1].shape[0] = 3;
  EXPECT_FALSE(ReadWeightsMatch(by_order, *plan).differs());
}

TEST(WeightsMatch, NotesWhatIsNotAsInTheReference) {
  EXPECT_EQ(NoteOf({How::kByName, 0, 0, {}, false, false}), "");
  EXPECT_EQ(NoteOf({How::kNoWeights, 3, 0, {}, false, false}), "");
  EXPECT_EQ(NoteOf({How::kByName, 1, 0, {}, false, false}),
            "weights were set by name; 1 of its own stays as its constructor made it");
  EXPECT_THAT(NoteOf({How::kByName, 2, 70, {"a", "b", "c", "d", "e"}, false, false}),
              HasSubstr("it lacks the reference's a, b, c, d and 66 more; 2 of its own stay"));
  EXPECT_EQ(NoteOf({How::kByOrder, 0, 0, {}, false, false}),
            "weights were matched by order, not by name");
  EXPECT_EQ(NoteOf({How::kFromSeed, 2, 1, {"a"}, true, false}),
            "weights are the candidate's own, made under the reference's seed");
}

}  // namespace
}  // namespace assay
