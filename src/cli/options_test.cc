#include "cli/options.h"

#include <gmock/gmock.h>

#include <CLI/CLI.hpp>

#include "cli/search_command.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

// Returns the error of `assay judge p.py c.cpp` with these words; empty if there is none.
std::string ErrorOf(const std::string& words) {
  CLI::App app;
  JudgeOptions options;
  options.AddTo(app);
  try {
    app.parse("p.py c.cpp " + words);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "";
}

// A range was printed with 309 digits.
TEST(Options, ANumberOutOfItsRangeGetsOneClearSentence) {
  EXPECT_EQ(ErrorOf("--budget -1"), "--budget: must be a number above 0, not -1");
  for (const char* value : {"0", "nan", "inf", "many"})
    EXPECT_EQ(ErrorOf(std::string("--timeout ") + value),
              std::string("--timeout: must be a number above 0, not ") + value);
  EXPECT_EQ(ErrorOf("--threads 0"), "--threads: must be a whole number from 1 to 4096, not 0");
  EXPECT_EQ(ErrorOf("--threads 1.5"), "--threads: must be a whole number from 1 to 4096, not 1.5");
  EXPECT_EQ(ErrorOf("--sustained 0.1"), "--sustained: must be a number from 0.5 to 600, not 0.1");
  EXPECT_EQ(ErrorOf("--sustained 0.5 --threads 4096 --budget 1e-3"), "");
}

// CLI11's range lets NaN pass: a model was asked at no temperature.
TEST(Options, NaNIsNoNumber) {
  CLI::App app;
  SearchOptions options;
  options.AddTo(app);
  for (const char* name : {"--temperature", "--timeout", "--verdict-seconds"})
    EXPECT_THROW(app.parse(std::string("softmax ") + name + " nan"), CLI::ParseError) << name;
}

TEST(Options, HelpSaysWhatANumberMayBe) {
  CLI::App app;
  JudgeOptions options;
  options.AddTo(app);
  EXPECT_THAT(app.help(), HasSubstr("1 to 4096"));
  EXPECT_THAT(app.help(), HasSubstr("above 0"));
}

}  // namespace
}  // namespace assay
