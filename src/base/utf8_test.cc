#include "base/utf8.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

using std::literals::operator""sv;

TEST(Utf8, TextIsText) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("plain \0 text"sv));
  EXPECT_TRUE(IsUtf8("\xc2\x80 \xdf\xbf \xe0\xa0\x80 \xed\x9f\xbf \xee\x80\x80"));
  EXPECT_TRUE(IsUtf8("\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf"));
}

TEST(Utf8, WhatIsNotTextIsRefused) {
  for (const std::string_view bytes : {
           "\xff"sv,              // no lead byte
           "\x80"sv,              // a continuation without its lead
           "\xc3"sv,              // cut off
           "\xe2\x82"sv,          // cut off
           "\xc3("sv,             // no continuation
           "\xc0\x80"sv,          // overlong NUL
           "\xe0\x9f\xbf"sv,      // overlong
           "\xed\xa0\x80"sv,      // a surrogate
           "\xf0\x8f\xbf\xbf"sv,  // overlong
           "\xf4\x90\x80\x80"sv,  // beyond U+10FFFF
           "\xf5\x80\x80\x80"sv,
       })
    EXPECT_FALSE(IsUtf8(bytes));
}

}  // namespace
}  // namespace assay
