#include "ladder/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/files.h"
#include "ladder/ladder_testing.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Rows : public ::testing::Test {
 protected:
  Rows() : folder_(TemporaryFolder::Create().value()) {}
  std::string Path() const { return (folder_.path() / "new" / "rows.jsonl").string(); }
  std::string Text() const { return ReadFile(Path(), 1 << 20).value(); }

  TemporaryFolder folder_;
};

TEST_F(Rows, ARowIsAVerdictWithoutItsSamples) {
  LadderRow row = TestRow("01_naive.cpp", 0.5);
  row.verdict.samples.resize(3);
  const std::string text = RowToJson(row);
  EXPECT_THAT(text, HasSubstr(R"({"judge":"abc1234","date":"2026-11-26T10:00:00+00:00","ladder":)"
                              R"("steps","schema":"assay.verdict/1")"));
  EXPECT_THAT(text, Not(HasSubstr("samples\":[")));
  const auto read = ParseRows(text + "\n", "rows.jsonl", "steps");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 1u);
  EXPECT_EQ(read->front().verdict.candidate.hash, "01_naive.cpp");
  EXPECT_EQ(SpeedOf(read->front().verdict, "eager")->percent, 50);
  EXPECT_EQ(ParseRows(text, "rows.jsonl", "other")->size(), 0u);
}

TEST_F(Rows, TheFileGrowsByARowAndIsReadBack) {
  {
    auto file = RowFile::Open(Path());
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_TRUE(file->Append(TestRow("01_naive.cpp", 0.5)));
    EXPECT_EQ(file->rows().size(), 1u);
    const auto second = RowFile::Open(Path());
    ASSERT_FALSE(second);
    EXPECT_THAT(second.error().message, HasSubstr("is in use"));
  }
  const auto again = RowFile::Open(Path());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->rows().size(), 1u);
  EXPECT_FALSE(again->was_torn());
}

TEST_F(Rows, ATornRowIsPassedOver) {
  ASSERT_TRUE(RowFile::Open(Path())->Append(TestRow("01_naive.cpp", 0.5)));
  const std::string whole = Text();
  std::ofstream(Path(), std::ios::app) << whole.substr(0, whole.size() / 2);
  EXPECT_EQ(ReadRows(Path(), "steps")->size(), 1u);
  auto file = RowFile::Open(Path());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(file->was_torn());
  EXPECT_EQ(file->rows().size(), 1u);
}

TEST_F(Rows, FaultsNameTheLine) {
  const auto fault = [](const std::string& text) {
    const auto read = ParseRows(text, "rows.jsonl", "");
    return read ? "none" : read.error().message;
  };
  const std::string row = RowToJson(TestRow("01_naive.cpp", 0.5)) + "\n";
  EXPECT_THAT(fault(row + "nonsense\n"), HasSubstr("rows.jsonl line 2: not JSON"));
  EXPECT_THAT(fault("[]\n"), HasSubstr("line 1: judge is missing"));
  EXPECT_THAT(fault(R"({"judge":"a","date":"b","ladder":"c"})"), HasSubstr("schema"));
}

TEST_F(Rows, ARowStandsForARungWhereAllAgrees) {
  std::vector<LadderRow> rows{TestRow("01_naive.cpp", 0.5), TestRow("01_naive.cpp", 0.6)};
  const RowKey key{
      "abc1234",     "steps", "01_naive.cpp", "problem", rows[0].verdict.problem.set, "cpu",
      "A Processor", 1,       {"eager"}};
  const LadderRow* found = FindRow(rows, key);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(SpeedOf(found->verdict, "eager")->percent, 60);  // the newest
  const auto finds = [&](auto change) {
    RowKey other = key;
    change(other);
    return FindRow(rows, other) != nullptr;
  };
  EXPECT_TRUE(finds([](RowKey&) {}));
  EXPECT_FALSE(finds([](RowKey& other) { other.judge = "fff"; }));
  EXPECT_FALSE(finds([](RowKey& other) { other.ladder = "other"; }));
  EXPECT_FALSE(finds([](RowKey& other) { other.candidate_hash = "changed"; }));
  EXPECT_FALSE(finds([](RowKey& other) { other.problem_hash = "changed"; }));
  EXPECT_FALSE(finds([](RowKey& other) { other.set["ROWS"] = "9"; }));
  EXPECT_FALSE(finds([](RowKey& other) { other.device = "cuda"; }));
  EXPECT_FALSE(finds([](RowKey& other) { other.machine = "Another"; }));
  EXPECT_FALSE(finds([](RowKey& other) { other.machine = "A Proc"; }));
  EXPECT_FALSE(finds([](RowKey& other) { other.threads = 2; }));
  EXPECT_FALSE(finds([](RowKey& other) { other.baselines.push_back("compiled"); }));
}

TEST_F(Rows, AGpuIsKnownByItsName) {
  std::vector<LadderRow> rows{TestRow("01_naive.cpp", 0.5)};
  rows[0].verdict.machine.gpu = "NVIDIA H100 NVL (sm_90a, driver for CUDA 13.0)";
  RowKey key{
      "abc1234",         "steps", "01_naive.cpp", "problem", rows[0].verdict.problem.set, "cuda",
      "NVIDIA H100 NVL", 1,       {"eager"}};
  EXPECT_NE(FindRow(rows, key), nullptr);
  key.machine = "NVIDIA H100";
  EXPECT_EQ(FindRow(rows, key), nullptr);
}

// A wrong rung has no times, and is judged no more often than a right one.
TEST_F(Rows, ABrokenRungsRowStands) {
  const std::vector<LadderRow> rows{TestRow("01_naive.cpp", 0, Outcome::kWrong)};
  const RowKey key{
      "abc1234", "steps", "01_naive.cpp", "problem", rows[0].verdict.problem.set, "cpu",
      "",        1,       {"eager"}};
  EXPECT_NE(FindRow(rows, key), nullptr);
}

}  // namespace
}  // namespace assay
