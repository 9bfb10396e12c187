#include "cli/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <fstream>

#include "base/files.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

class Config : public ::testing::Test {
 protected:
  Config() : folder_(TemporaryFolder::Create().value()), app_("test", "assay") {
    ::setenv("XDG_CONFIG_HOME", folder_.path().c_str(), 1);
    CLI::App* judge = app_.add_subcommand("judge");
    judge->add_option("--threads", threads_)->check(CLI::Range(1, 8));
    judge->add_option("--baseline", baseline_)->capture_default_str();
    judge->add_flag("--quiet", quiet_);
  }

  void WriteUserConfig(const std::string& text) {
    std::filesystem::create_directories(UserConfigPath().parent_path());
    std::ofstream(UserConfigPath()) << text;
  }
  std::string Error() {
    const auto origins = ApplyConfigFiles(app_);
    return origins ? "no error" : origins.error().message;
  }

  TemporaryFolder folder_;
  CLI::App app_;
  int threads_ = 4;
  std::string baseline_ = "eager";
  bool quiet_ = false;
};

TEST_F(Config, ValuesBecomeDefaultsAndTheCommandLineStandsAbove) {
  WriteUserConfig("[judge]\nthreads = 2\nbaseline = 'compiled'\nquiet = true\n");
  const auto origins = ApplyConfigFiles(app_);
  ASSERT_TRUE(origins) << origins.error().message;
  EXPECT_EQ(threads_, 2);
  EXPECT_EQ(baseline_, "compiled");
  EXPECT_TRUE(quiet_);
  app_.parse("judge --threads 3", false);
  EXPECT_EQ(threads_, 3);
  EXPECT_EQ(baseline_, "compiled");
  EXPECT_TRUE(quiet_);
  EXPECT_THAT(origins->at("judge.threads"), HasSubstr("config.toml line 2"));
}

TEST_F(Config, NoFileIsNoError) {
  const auto origins = ApplyConfigFiles(app_);
  ASSERT_TRUE(origins);
  EXPECT_TRUE(origins->empty());
  EXPECT_EQ(threads_, 4);
}

TEST_F(Config, MistakesAreNamedWithTheirLine) {
  WriteUserConfig("[judge]\nthreds = 2\n");
  EXPECT_THAT(Error(),
              HasSubstr("line 2: assay judge has no option --threds; did you mean 'threads'?"));
  WriteUserConfig("[jugde]\nthreads = 2\n");
  EXPECT_THAT(Error(), HasSubstr("did you mean 'judge'?"));
  WriteUserConfig("threads = 2\n");
  EXPECT_THAT(Error(), HasSubstr("such as [judge]"));
  WriteUserConfig("[judge]\nthreads = 99\n");
  EXPECT_THAT(Error(), HasSubstr("line 2: --threads: Value 99 not in range"));
  WriteUserConfig("[judge]\nthreads = [2]\n");
  EXPECT_THAT(Error(), HasSubstr("a string, a number, true or false"));
  WriteUserConfig("[judge\n");
  EXPECT_THAT(Error(), HasSubstr("not TOML"));
}

TEST_F(Config, SettingsAreListedWithTheirOrigin) {
  WriteUserConfig("[judge]\nbaseline = 'compiled'\n");
  const Origins origins = ApplyConfigFiles(app_).value();
  const auto settings = ListSettings(app_, origins);
  ASSERT_EQ(settings.size(), 3U);
  EXPECT_EQ(settings[0].name, "judge.threads");
  EXPECT_EQ(settings[0].origin, "built in");
  EXPECT_EQ(settings[1].value, "compiled");
  EXPECT_THAT(settings[1].origin, HasSubstr("line 2"));
}

}  // namespace
}  // namespace assay
