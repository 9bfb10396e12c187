#include "base/secret.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(RandomHex, GivesAsManyDigitsAndNoneTwice) {
  const auto one = RandomHex(16), other = RandomHex(16);
  ASSERT_TRUE(one && other);
  EXPECT_EQ(one->size(), 32u);
  EXPECT_EQ(one->find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(*one, *other);
}

TEST(IsSameSecret, ComparesAllOfBoth) {
  EXPECT_TRUE(IsSameSecret("abc", "abc"));
  EXPECT_FALSE(IsSameSecret("abc", "abd"));
  EXPECT_FALSE(IsSameSecret("abc", "ab"));
  EXPECT_TRUE(IsSameSecret("", ""));
}

}  // namespace
}  // namespace assay
