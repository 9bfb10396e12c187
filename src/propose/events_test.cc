#include "propose/events.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(ParseServerEvents, ReadsNamesDataAndComments) {
  const auto events = ParseServerEvents(
      ": hello\n\nevent: a\ndata: one\ndata:two\n\ndata: three\r\n\r\nid: 7\rdata:  four\r\r"
      "event: nothing\n\ndata: torn");
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].name, "a");
  EXPECT_EQ(events[0].data, "one\ntwo");
  EXPECT_EQ(events[1].name, "");
  EXPECT_EQ(events[1].data, "three");
  EXPECT_EQ(events[2].data, " four");
  EXPECT_EQ(events[3].data, "torn");
  EXPECT_TRUE(ParseServerEvents("").empty());
}

}  // namespace
}  // namespace assay
