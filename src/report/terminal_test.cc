#include "report/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include <map>

#include "base/unique_fd.h"

namespace assay {
namespace {

EnvironmentLookup Environment(std::map<std::string, std::string> values) {
  return [values](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? std::string() : found->second;
  };
}

// A pseudo-terminal of 132 columns; both ends stay open as long as this.
class DetectTerminalTest : public testing::Test {
 protected:
  void SetUp() override {
    master_ = UniqueFd(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    ASSERT_TRUE(master_);
    ASSERT_EQ(::grantpt(master_.get()), 0);
    ASSERT_EQ(::unlockpt(master_.get()), 0);
    char name[128];
    ASSERT_EQ(::ptsname_r(master_.get(), name, sizeof name), 0);
    terminal_ = UniqueFd(::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
    ASSERT_TRUE(terminal_);
    winsize size{};
    size.ws_col = 132;
    size.ws_row = 40;
    ASSERT_EQ(::ioctl(terminal_.get(), TIOCSWINSZ, &size), 0);
  }
  UniqueFd master_, terminal_;
};

TEST_F(DetectTerminalTest, ATerminalHasColourAndItsWidth) {
  const Terminal found =
      DetectTerminal(terminal_.get(), Environment({{"TERM", "xterm"}, {"LANG", "C.UTF-8"}}));
  EXPECT_TRUE(found.interactive);
  EXPECT_TRUE(found.colour);
  EXPECT_TRUE(found.unicode);
  EXPECT_EQ(found.width, 132);
  EXPECT_EQ(CardStyleFor(found).width, 80);
}

TEST_F(DetectTerminalTest, NoColorTakesColourAlone) {
  const Terminal found =
      DetectTerminal(terminal_.get(), Environment({{"TERM", "xterm"}, {"NO_COLOR", "1"}}));
  EXPECT_TRUE(found.interactive);
  EXPECT_FALSE(found.colour);
}

TEST_F(DetectTerminalTest, DumbTerminalsAreNotRedrawn) {
  EXPECT_FALSE(DetectTerminal(terminal_.get(), Environment({{"TERM", "dumb"}})).interactive);
  EXPECT_FALSE(DetectTerminal(terminal_.get(), Environment({})).interactive);
  EXPECT_FALSE(DetectTerminal(terminal_.get(), Environment({{"TERM", "dumb"}})).colour);
}

TEST_F(DetectTerminalTest, TheStrongestLocaleVariableDecides) {
  const auto unicode = [&](std::map<std::string, std::string> values) {
    return DetectTerminal(terminal_.get(), Environment(std::move(values))).unicode;
  };
  EXPECT_TRUE(unicode({{"LANG", "de_DE.utf8"}}));
  EXPECT_FALSE(unicode({{"LC_ALL", "C"}, {"LANG", "en_US.UTF-8"}}));
  EXPECT_FALSE(unicode({}));
}

TEST(DetectTerminal, AFileIsNoTerminal) {
  UniqueFd file(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  const Terminal found =
      DetectTerminal(file.get(), Environment({{"TERM", "xterm"}, {"LANG", "C.UTF-8"}}));
  EXPECT_FALSE(found.interactive);
  EXPECT_FALSE(found.colour);
  EXPECT_TRUE(found.unicode);
}

}  // namespace
}  // namespace assay
