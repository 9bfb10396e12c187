#include "answer/text.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(MendUtf8, KeepsTextAndReplacesOtherBytes) {
  EXPECT_EQ(MendUtf8("caf\xc3\xa9"), "caf\xc3\xa9");
  EXPECT_EQ(MendUtf8("a\xff"
                     "b"),
            "a\xef\xbf\xbd"
            "b");
  EXPECT_EQ(MendUtf8(std::string("a\0b", 3)), std::string("a\0b", 3));
}

TEST(SplitReasoning, TakesTaggedPartsOut) {
  struct Case {
    const char *text, *reasoning, *rest;
  };
  for (const Case& c : {
           Case{"plain", "", "plain"},
           Case{"<think>why</think>code", "why", "code"},
           Case{"a<thinking> why </thinking>b<reasoning>too</reasoning>c", "why\ntoo", "abc"},
           Case{"why</think>code", "why", "code"},  // begun in the prompt
           Case{"<think>why", "why", ""},           // cut off at the length limit
           Case{"<think>a<think>b</think>c</think>d", "a<think>b</think>c", "d"},
           Case{"a<b>c</thinker>d", "", "a<b>c</thinker>d"},
           Case{"vector<think_t> x; if (a < b)", "", "vector<think_t> x; if (a < b)"},
           Case{"<think>x</think>code</think>", "x", "code</think>"},
           Case{"", "", ""},
       }) {
    const SplitText split = SplitReasoning(c.text);
    EXPECT_EQ(split.reasoning, c.reasoning) << c.text;
    EXPECT_EQ(split.rest, c.rest) << c.text;
  }
}

}  // namespace
}  // namespace assay
