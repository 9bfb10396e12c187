#include "run/run_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/files.h"
#include "run/run_testing.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(RunRecord, KeepsTheProblemsOfEveryCall) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  EXPECT_THAT(*ReadRunRecord(folder.path()), IsEmpty());
  RunPlan plan = TestPlan();
  const auto write = [&](const std::string& text) {
    std::ofstream(folder.path() / kRunRecordName) << text;
  };
  write(RunRecordText(plan, {}));
  auto read = ReadRunRecord(folder.path());
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ((*read)[1].name, "40_Matmul");
  EXPECT_EQ((*read)[1].level, 2);
  EXPECT_EQ((*read)[1].mechanism, "");
  plan.problems[1].mechanism = "tiling";
  write(RunRecordText(plan, {}));
  read = ReadRunRecord(folder.path());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ((*read)[1].mechanism, "tiling");
  plan.problems.pop_back();
  plan.problems[0].name = "1_Square";
  write(RunRecordText(plan, *read));
  EXPECT_EQ(ReadRunRecord(folder.path())->size(), 3u);
  write("{\"problems\": 3}");
  EXPECT_THAT(ReadRunRecord(folder.path()).error().message, HasSubstr("move it away"));
}

}  // namespace
}  // namespace assay
