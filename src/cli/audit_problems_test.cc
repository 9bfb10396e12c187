#include "cli/audit_problems.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace assay {
namespace {

TEST(NaturallyBefore, NumbersCountAsNumbers) {
  std::vector<std::string> names = {"10_b.py", "2_c.py", "1_z.py", "2_a.py", "a.py"};
  std::sort(names.begin(), names.end(), NaturallyBefore);
  EXPECT_EQ(names, (std::vector<std::string>{"1_z.py", "2_a.py", "2_c.py", "10_b.py", "a.py"}));
  EXPECT_FALSE(NaturallyBefore("2_a.py", "2_a.py"));
  EXPECT_TRUE(NaturallyBefore("9.py", "12345678901234567890123.py"));
  EXPECT_TRUE(NaturallyBefore("", "a"));
}

TEST(AssignsConstant, AtTheTopLevelAlone) {
  const std::string source =
      "import torch\nROWS = 4\nA, B = 1, 2\nC = D = 3\nWIDE: int = 5\n"
      "class Model:\n    INSIDE = 1\nprint(OTHER == 2)\n";
  for (const char* name : {"ROWS", "A", "B", "C", "D", "WIDE"})
    EXPECT_TRUE(AssignsConstant(source, name)) << name;
  for (const char* name : {"ROW", "INSIDE", "torch", "W", "int_"})
    EXPECT_FALSE(AssignsConstant(source, name)) << name;
}

TEST(AskedProblems, SaysWhatIsMissing) {
  const auto nowhere = AskedProblems({"no/such/file.py"}, "", {}, {});
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().kind, ErrorKind::kUsage);
  EXPECT_FALSE(AskedProblems({"/"}, "", {}, {}));
  EXPECT_FALSE(AskedProblems({"x.py"}, "", {"ROWS"}, {}));
}

TEST(AskedProblems, ASuiteStandsForItsProblemsAndSettingsGoWhereTheyFit) {
  const std::string suite = ASSAY_SOURCE_DIRECTORY "/problems";
  const auto all = AskedProblems({suite}, "tiny", {"SEQUENCE=32"}, {});
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_GE(all->size(), 46U);
  size_t with_sequence = 0;
  for (const AskedAudit& asked : *all) {
    EXPECT_TRUE(asked.error.empty()) << asked.error;
    const auto set = asked.problem.set.find("SEQUENCE");
    if (set != asked.problem.set.end() && set->second == "32") ++with_sequence;
  }
  EXPECT_GT(with_sequence, 2U);
  EXPECT_LT(with_sequence, all->size());
  EXPECT_FALSE(AskedProblems({suite}, "tiny", {"NO_SUCH_NAME=1"}, {}));
}

}  // namespace
}  // namespace assay
