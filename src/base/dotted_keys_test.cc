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

}  // namespace
}  // namespace assay
