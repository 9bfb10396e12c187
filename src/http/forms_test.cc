#include "http/forms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(ReadTarget, SplitsAndDecodes) {
  const auto split = ReadTarget("/problems/a%20b?p=1.5&name=x+y%26z&flag#top");
  ASSERT_TRUE(split);
  EXPECT_EQ(split->path, "/problems/a b");
  EXPECT_THAT(split->query, ElementsAre(Pair("flag", ""), Pair("name", "x y&z"), Pair("p", "1.5")));
  EXPECT_EQ(ReadTarget("/")->path, "/");
}

TEST(ReadTarget, RefusesPathsThatLeadElsewhere) {
  for (const std::string_view target :
       {"", "*", "http://other/", "/../etc/passwd", "/a/%2e%2e/b", "/a/./b", "/a%2fb", "/a%5cb",
        "/a%00b", "/%", "/%4", "/%zz", "/a?b=%", "/..%2f..%2fetc", "/%2e%2e%2f"})
    EXPECT_FALSE(ReadTarget(target)) << target;
}

TEST(ReadForm, BoundsTheNumberOfFields) {
  std::string many;
  for (size_t i = 0; i <= kFieldsMax; ++i) many += "a=1&";
  EXPECT_FALSE(ReadForm(many));
  EXPECT_THAT(*ReadForm("a=1&a=2&&=x"), ElementsAre(Pair("", "x"), Pair("a", "1")));
}

TEST(PercentEncoded, IsDecodedToTheSame) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(PercentDecoded(PercentEncoded(all), true), all);
}

TEST(ReadMultipart, TakesFieldsAndFiles) {
  const std::string body =
      "--xYz\r\nContent-Disposition: form-data; name=\"problem\"\r\n\r\nsoftmax\r\n"
      "--xYz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"C:\\\\k\\\\my "
      "\\\"a\\\".cu\"\r\n"
      "Content-Type: text/plain\r\n\r\nint a;\r\n--not\r\n\r\n--xYz\r\n"
      "content-disposition: form-data; name=empty\r\n\r\n\r\n--xYz--\r\n";
  const auto parts = ReadMultipart("multipart/form-data; boundary=\"xYz\"", body);
  ASSERT_TRUE(parts) << parts.error().message;
  ASSERT_EQ(parts->size(), 3u);
  EXPECT_EQ(parts->at(0).name, "problem");
  EXPECT_EQ(parts->at(0).content, "softmax");
  EXPECT_EQ(parts->at(1).file_name, "my \"a\".cu");
  EXPECT_EQ(parts->at(1).content, "int a;\r\n--not\r\n");
  EXPECT_EQ(parts->at(2).name, "empty");
  EXPECT_EQ(parts->at(2).content, "");
}

TEST(ReadMultipart, TellsBrokenForms) {
  const std::string type = "multipart/form-data; boundary=b";
  for (const std::string body : {"", "--b", "--b\r\n", "--c\r\n\r\n\r\n--c--",
                                 "--b\r\nContent-Disposition: form-data\r\n\r\nx"})
    EXPECT_FALSE(ReadMultipart(type, body)) << body;
  EXPECT_FALSE(ReadMultipart("multipart/form-data", "--b--"));
  EXPECT_FALSE(ReadMultipart("application/json", "--b--"));
  EXPECT_TRUE(ReadMultipart(type, "--b--\r\n")->empty());
  std::string many;
  for (size_t i = 0; i <= kFieldsMax; ++i)
    many += "--b\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n";
  EXPECT_THAT(ReadMultipart(type, many + "--b--").error().message, HasSubstr("too many"));
}

TEST(ReadCookies, TakesTheFirstOfAName) {
  EXPECT_THAT(ReadCookies("a=1; b=2=3;c; a=9"), ElementsAre(Pair("a", "1"), Pair("b", "2=3")));
  EXPECT_TRUE(ReadCookies("").empty());
}

TEST(MatchPath, CapturesOnePartEach) {
  EXPECT_THAT(*MatchPath("/jobs/{id}/events", "/jobs/7/events"), ElementsAre(Pair("id", "7")));
  EXPECT_FALSE(MatchPath("/jobs/{id}", "/jobs/"));
  EXPECT_FALSE(MatchPath("/jobs/{id}", "/jobs/7/8"));
  EXPECT_FALSE(MatchPath("/jobs", "/jobs/"));
  EXPECT_TRUE(MatchPath("/", "/")->empty());
}

}  // namespace
}  // namespace assay
