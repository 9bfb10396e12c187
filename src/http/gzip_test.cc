#include "http/gzip.h"

#include <gtest/gtest.h>
#define ZLIB_CONST
#include <zlib.h>

namespace assay {
namespace {

std::string Unpacked(const std::string& packed, size_t bytes) {
  std::string text(bytes + 1, '\0');
  z_stream stream{};
  EXPECT_EQ(::inflateInit2(&stream, 15 + 16), Z_OK);
  stream.next_in = reinterpret_cast<const Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  EXPECT_EQ(::inflate(&stream, Z_FINISH), Z_STREAM_END);
  text.resize(stream.total_out);
  ::inflateEnd(&stream);
  return text;
}

TEST(Gzip, APeerThatNamesItAcceptsIt) {
  for (const char* value : {"gzip", "GZip", "deflate, gzip;q=1.0, br", "br;q=0, gzip ; q=0.5", "*",
                            "gzip, *;q=0", "identity;q=0, *"})
    EXPECT_TRUE(AcceptsGzip(value)) << value;
}

TEST(Gzip, APeerThatDoesNotNameItOrRefusesItGetsThePlainBody) {
  for (const char* value :
       {"", "br", "identity", "gzip;q=0", "gzip; q=0.000, *", "*;q=0", ",;,", "xgzip", "gzipped"})
    EXPECT_FALSE(AcceptsGzip(value)) << value;
}

TEST(Gzip, TextComesOutAsItWentIn) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "<td>" + std::to_string(i * 7919 % 10'007) + "</td>";
  for (const std::string& each : {std::string(), std::string("a"), std::string(3, '\0'), text}) {
    const auto packed = Gzipped(each);
    ASSERT_TRUE(packed);
    EXPECT_EQ(Unpacked(*packed, each.size()), each);
  }
  EXPECT_LT(Gzipped(text)->size(), text.size() / 3);
}

TEST(Gzip, OnlyTextOfSomeSizeIsWorthIt) {
  EXPECT_TRUE(IsWorthGzip("text/html; charset=utf-8", 100'000));
  EXPECT_TRUE(IsWorthGzip("application/json", 100'000));
  EXPECT_FALSE(IsWorthGzip("application/json", 200));
  EXPECT_FALSE(IsWorthGzip("application/pdf", 100'000));
  EXPECT_FALSE(IsWorthGzip("application/gzip", 100'000));
}

}  // namespace
}  // namespace assay
