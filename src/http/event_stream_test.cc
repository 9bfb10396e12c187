#include "http/event_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Events(const std::vector<std::string>& pieces, std::string* last_id) {
  EventStream stream;
  std::vector<std::string> events;
  for (const std::string& piece : pieces)
    stream.Take(piece, [&](const StreamedEvent& event) {
      events.push_back(event.id + "|" + event.name + "|" + event.data);
      return true;
    });
  *last_id = stream.last_id();
  return events;
}

TEST(EventStream, ReadsIdsNamesAndDataOfSeveralLines) {
  std::string last;
  EXPECT_THAT(Events({": hello\n\nid: 1\ndata: a\n\nid:2\nevent: end\ndata: b\ndata:c\n\n"}, &last),
              ElementsAre("1||a", "2|end|b\nc"));
  EXPECT_EQ(last, "2");
}

TEST(EventStream, DoesNotMindWhereItIsCutNorHowLinesEnd) {
  const std::string text = "id: 7\r\ndata: a\r\n\r\ndata: b\r\rdata: c\n\n";
  std::vector<std::string> bytes;
  for (const char c : text) bytes.emplace_back(1, c);
  std::string last;
  EXPECT_THAT(Events(bytes, &last), ElementsAre("7||a", "7||b", "7||c"));
  EXPECT_THAT(Events({text}, &last), ElementsAre("7||a", "7||b", "7||c"));
}

TEST(EventStream, AnEventThatItsEndCutsOffIsNone) {
  std::string last;
  EXPECT_THAT(Events({"id: 1\ndata: a\n\nid: 2\ndata: b\n"}, &last), ElementsAre("1||a"));
  EXPECT_EQ(last, "1");
}

TEST(EventStream, EndsWhenToldAndAtAnEventThatIsTooLarge) {
  EventStream stream;
  int events = 0;
  EXPECT_FALSE(stream.Take("data: a\n\ndata: b\n\n", [&](const StreamedEvent&) {
    ++events;
    return false;
  }));
  EXPECT_EQ(events, 1);
  EventStream small;
  small.event_bytes_max = 10;
  EXPECT_FALSE(small.Take("data: 0123456789\n\n", [](const StreamedEvent&) { return true; }));
}

}  // namespace
}  // namespace assay
