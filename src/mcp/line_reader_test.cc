#include "mcp/line_reader.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace assay {
namespace {

using Kind = LineReader::Piece::Kind;

class LineReaderTest : public testing::Test {
 protected:
  LineReaderTest() {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    out_ = UniqueFd(ends[0]);
    in_ = UniqueFd(ends[1]);
  }
  void Write(const std::string& text) {
    ASSERT_EQ(::write(in_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  UniqueFd out_, in_;
};

TEST_F(LineReaderTest, GivesLinesAsTheyCome) {
  LineReader reader(out_.get(), 100);
  EXPECT_FALSE(reader.Next(0));
  Write("one\n\ntwo\r\nthr");
  EXPECT_EQ(reader.Next(0)->line, "one");
  EXPECT_EQ(reader.Next(0)->line, "two");
  EXPECT_FALSE(reader.Next(0));
  Write("ee");
  in_ = UniqueFd();
  EXPECT_FALSE(reader.Next(0));
  EXPECT_EQ(reader.Next(0)->line, "three");
  EXPECT_EQ(reader.Next(0)->kind, Kind::kEnd);
  EXPECT_EQ(reader.Next(0)->kind, Kind::kEnd);
}

TEST_F(LineReaderTest, ALineThatIsTooLongIsSkippedWhole) {
  LineReader reader(out_.get(), 10);
  for (int i = 0; i < 100; ++i) {
    Write(std::string(500, 'x'));
    EXPECT_FALSE(reader.Next(0));
  }
  Write("tail\nshort\n");
  EXPECT_EQ(reader.Next(0)->kind, Kind::kTooLong);
  EXPECT_EQ(reader.Next(0)->line, "short");
}

TEST_F(LineReaderTest, ALineOfTheLargestSizeIsRead) {
  LineReader reader(out_.get(), 10);
  Write("0123456789\n0123456789a\n");
  EXPECT_EQ(reader.Next(0)->line, "0123456789");
  EXPECT_EQ(reader.Next(0)->kind, Kind::kTooLong);
}

}  // namespace
}  // namespace assay
