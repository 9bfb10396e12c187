#include "serve/account_names.h"

#include <gmock/gmock.h>

#include <set>

namespace assay {
namespace {

using ::testing::HasSubstr;

std::string RefusalOf(const std::string& name) {
  const auto checked = CheckAccountName(name);
  return checked ? "none" : checked.error().message;
}

TEST(AccountNames, OrdinaryOnesOfAnyAlphabetAreTaken) {
  for (const std::string name :
       {"ann", "Zo\u00eb van der Berg", "O'Neill-2", "\u0410\u043d\u043d\u0430",
        "\u03a0\u03ad\u03c4\u03c1\u03bf\u03c2", "\u674e \u660e", "\u0645\u0631\u064a\u0645",
        "Nguy\u1ec5n", "student 17", "<b>bold</b>"})
    EXPECT_EQ(RefusalOf(name), "none") << name;
}

TEST(AccountNames, WhatDoesNotShowIsRefused) {
  const std::string wide = "a\u00a0b", soft = "a\u00adb", filler = "a\u3164", mark = "a\u0301";
  for (const std::string& name :
       {std::string(), std::string(" ann"), std::string("ann "), std::string("a  b"),
        std::string("a\nb"), std::string("a\x1b[31m"), std::string("a\u202e") + "b",
        std::string("a\u200b") + "b", std::string("\xff"), std::string("a\u2066") + "b",
        std::string(41, 'a'), std::string("a\0b", 3), wide, soft, filler, mark,
        std::string("\u2800"), std::string("a\U000e0041")})
    EXPECT_NE(RefusalOf(name), "none") << name;
}

// `mentor` with a Cyrillic letter stood on the board beside the mentor.
TEST(AccountNames, LettersThatLookAlikeAreNotMixed) {
  EXPECT_THAT(RefusalOf("ment\u043er"), HasSubstr("several alphabets"));
  EXPECT_THAT(RefusalOf("\u03b1nn"), HasSubstr("several alphabets"));
  EXPECT_THAT(RefusalOf("\uff41nn"), HasSubstr("look like others"));
  EXPECT_THAT(RefusalOf("\U0001d41ann"), HasSubstr("look like others"));
  EXPECT_THAT(RefusalOf("\u0251nn"), HasSubstr("look like others"));
}

TEST(AccountNames, NamesThatLookAlikeHaveOneSkeleton) {
  // Wholly Cyrillic, as `ace`; wholly Greek, as `TOM`.
  EXPECT_EQ(SkeletonOfName("\u0430\u0441\u0435"), SkeletonOfName("ace"));
  EXPECT_EQ(SkeletonOfName("\u03a4\u039f\u039c"), SkeletonOfName("tom"));
  EXPECT_EQ(SkeletonOfName("lda"), SkeletonOfName("Ida"));
  EXPECT_EQ(SkeletonOfName("b0b"), SkeletonOfName("Bob"));
  EXPECT_EQ(SkeletonOfName("\u00c9va"), SkeletonOfName("\u00e9va"));
  EXPECT_EQ(SkeletonOfName("\u0410\u0434\u0430"), SkeletonOfName("\u0430\u0434\u0430"));
  const std::set<std::string> apart{SkeletonOfName("ann"),      SkeletonOfName("anna"),
                                    SkeletonOfName("will"),     SkeletonOfName("wiii"),
                                    SkeletonOfName("Zo\u00eb"), SkeletonOfName("Zoe")};
  EXPECT_EQ(apart.size(), 6u);
}

}  // namespace
}  // namespace assay
