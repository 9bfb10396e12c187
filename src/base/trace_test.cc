#include "base/trace.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "base/files.h"

namespace assay {
namespace {

// The program reads the variable once: it is set before any test runs.
const std::string& TracePath() {
  static const auto folder = TemporaryFolder::Create();
  static const std::string path = folder ? (folder->path() / "trace").string() : "";
  return path;
}
const int kSet = ::setenv("ASSAY_TRACE", TracePath().c_str(), 1);

TEST(Trace, EachSpanIsALineOfTheFormat) {
  ASSERT_EQ(kSet, 0);
  ASSERT_TRUE(Traced());
  AddSpan("twelve", 1'000'000, 13'000'000, 7);
  { const Span span("lives"); }
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      for (int each = 0; each < 100; ++each) AddSpan("beside others", 1, 2);
    });
  for (std::thread& thread : threads) thread.join();
  const auto text = ReadFile(TracePath(), 1 << 20);
  ASSERT_TRUE(text);
  EXPECT_TRUE(
      text->starts_with("[\n{\"name\":\"twelve\",\"ph\":\"X\",\"ts\":1000.000,\"dur\":12000."));
  EXPECT_NE(text->find("\"tid\":7},\n{\"name\":\"lives\""), std::string::npos);
  EXPECT_EQ(std::count(text->begin(), text->end(), '\n'), 1 + 2 + 400);
}

}  // namespace
}  // namespace assay
