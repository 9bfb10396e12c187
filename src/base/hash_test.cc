#include "base/hash.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Sha256Hex, MatchesTheStandardsTestVector) {  // FIPS 180-4, "abc"
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(FastHash, SeesASingleBit) {
  const char a[] = "0123456789", b[] = "0123456788";
  EXPECT_NE(FastHash(a, 10), FastHash(b, 10));
}

}  // namespace
}  // namespace assay
