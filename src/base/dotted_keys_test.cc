#include "base/dotted_keys.h"

#include <gtest/gtest.h>

#include <string>

namespace assay {
namespace {

TEST(DottedKeys, CountsDotsLineByLine) {
  const std::string most(kLineDotsMax, '.');
  EXPECT_EQ(LineWithTooManyDots(""), 0);
  EXPECT_EQ(LineWithTooManyDots(most + "\n" + most), 0);
  EXPECT_EQ(LineWithTooManyDots(most + "." + "\n"), 1);
  EXPECT_EQ(LineWithTooManyDots("a = 1\n\n" + most + "a.b"), 3);
}

TEST(DottedKeys, DotsOfStringsAndCommentsAreNoKeys) {
  const std::string many(kLineDotsMax + 1, '.');
  for (const std::string& text : {"a = \"" + many + "\"", "a = '" + many + "'", "# " + many,
                                  "a = \"\"\"\n" + many + "\n\"\"\"", "a = \"\\\"" + many + "\""})
    EXPECT_EQ(LineWithTooManyDots(text), 0) << text;
  // Behind each way in which a string or a comment ends.
  for (const std::string text :
       {"\"\"", "\"\\\\\"", "''", "'\\'", "\"\"\"a\"\"\"", "\"\"\"a\"\"\"\"\"", "'''a''''",
        "''''''", "# \"\n", "\"\"\"\\\"\"\"\"", "\"no TOML\n"})
    EXPECT_GT(LineWithTooManyDots(text + many), 0) << text;
  EXPECT_EQ(LineWithTooManyDots("a = '''\n\n'''\n" + many), 4);
}

}  // namespace
}  // namespace assay
