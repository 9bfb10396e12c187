#include "serve/moment.h"

#include <gtest/gtest.h>

#include "serve/instant.h"

namespace assay {
namespace {

TEST(Moment, ATimeHasAZone) {
  EXPECT_EQ(UtcText(ParseMoment("2026-12-01T18:00:05Z").value()), "2026-12-01T18:00:05Z");
  EXPECT_EQ(UtcText(ParseMoment("2026-12-01 18:00Z").value()), "2026-12-01T18:00:00Z");
  EXPECT_EQ(UtcText(ParseMoment("2026-12-01T00:30+01:00").value()), "2026-11-30T23:30:00Z");
  EXPECT_EQ(UtcText(ParseMoment("2028-02-29T23:00-02:30").value()), "2028-03-01T01:30:00Z");
}

TEST(Moment, OtherTextIsRefused) {
  for (const char* text :
       {"", "tomorrow", "2026-12-01", "2026-12-01T18:00", "2026-02-30T18:00Z", "2026-12-01T24:00Z",
        "2026-12-01T18:60Z", "2026-12-01T18:00:61Z", "2026-12-01T18:00+15:00", "1969-01-01T00:00Z",
        "2026-12-01T18:00Zx", "-026-12-01T18:00Z", "2026-1x-01T18:00Z", "2026-12-01T18:00:5Z"})
    EXPECT_FALSE(ParseMoment(text)) << text;
}

TEST(Moment, DurationsHaveAUnit) {
  EXPECT_EQ(ParseDuration("7d").value(), 7 * 24 * 3600);
  EXPECT_EQ(ParseDuration("36h").value(), 36 * 3600);
  EXPECT_EQ(ParseDuration("90m").value(), 5400);
  for (const char* text : {"", "d", "7", "7w", "-1d", "0h", "1.5h", "99999999d", " 7d"})
    EXPECT_FALSE(ParseDuration(text)) << text;
}

}  // namespace
}  // namespace assay
