#include "mine/pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "mine/mine_testing.h"
#include "model/sample_verdicts.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

Mined Named(const std::string& name, const std::string& code) {
  Mined mined = TestMined(name, "default", code);
  mined.name = name;
  return mined;
}

RunRow RowOn(const Mined& mined, Outcome outcome) {
  RunRow row;
  row.candidate = "out/candidates/" + mined.name + ".py";
  row.verdict = SampleVerdict(outcome);
  row.verdict->candidate.hash = Sha256Hex(mined.code.triton_code);
  row.verdict->problem.hash = mined.hash;
  row.verdict->problem.set = mined.set;
  row.verdict->seed = UINT64_MAX;
  return row;
}

TEST(MinedPairsTest, CorrectCandidatesAreRowsOfKernelBook) {
  const Mined mined = Named("softmax_default", "code");
  const MinedPairs pairs = PairsOf({mined}, {RowOn(mined, Outcome::kFaster)});
  ASSERT_EQ(pairs.lines.size(), 1u);
  EXPECT_EQ(pairs.faster, 1);
  EXPECT_TRUE(pairs.others.empty());
  const Json row = Json::parse(pairs.lines[0]);
  EXPECT_EQ(row["entry_point"], "Model");
  EXPECT_EQ(row["python_code"], "class Model: pass\n");
  EXPECT_EQ(row["triton_code"], "code");
  EXPECT_EQ(row["original_triton_code"], "generated code");
  EXPECT_EQ(row["module_name"], "softmax");
  EXPECT_EQ(row["uuid"], 0);
  EXPECT_EQ(row["verdict"]["outcome"], "faster");
  EXPECT_GT(row["verdict"]["speedup"].get<double>(), 1);
  EXPECT_EQ(row["verdict"]["interval"].size(), 2u);
  EXPECT_EQ(row["verdict"]["seed"], "18446744073709551615");
  EXPECT_EQ(row["mined"]["library_calls"][0], "extern_kernels.mm");
}

TEST(MinedPairsTest, AllOthersAreCountedByTheirOutcome) {
  const Mined right = Named("a", "one"), wrong = Named("b", "two"), unjudged = Named("c", "three");
  Mined refused = Named("", "");
  refused.refusal = "it has 2 graphs";
  const MinedPairs pairs =
      PairsOf({right, wrong, unjudged, refused},
              {RowOn(right, Outcome::kCorrect), RowOn(wrong, Outcome::kWrong)});
  EXPECT_EQ(pairs.lines.size(), 1u);
  EXPECT_EQ(pairs.faster, 0);
  EXPECT_EQ(pairs.others, (std::map<std::string, int64_t>{{"wrong", 1}, {"not judged", 1}}));
}

TEST(MinedPairsTest, VerdictsOnOtherTextDoNotCount) {
  const Mined mined = Named("a", "code");
  RunRow other = RowOn(mined, Outcome::kFaster);
  other.verdict->candidate.hash = "of another text";
  RunRow moved = RowOn(mined, Outcome::kFaster);
  moved.verdict->problem.hash = "of a file that was changed";
  EXPECT_TRUE(PairsOf({mined}, {other, moved}).lines.empty());
  // The newest verdict counts.
  const MinedPairs pairs =
      PairsOf({mined}, {RowOn(mined, Outcome::kFaster), RowOn(mined, Outcome::kWrong)});
  EXPECT_TRUE(pairs.lines.empty());
}

}  // namespace
}  // namespace assay
