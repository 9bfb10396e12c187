// Tests hosts that end during their start. Whole judgements test hosts in blocks.
#include "hosts/host.h"

#include <gmock/gmock.h>

namespace assay {
namespace {

using testing::HasSubstr;

HostTrouble TroubleOf(std::vector<std::string> arguments) {
  HostOptions options;
  options.sandbox.arguments = std::move(arguments);
  options.sandbox.environment = {{"PATH", "/usr/bin:/bin"}};
  auto host = Host::Start(std::move(options));
  return host ? HostTrouble{} : host.error();
}

// The judge looked for its last words in a report that it had not been given yet, and crashed: a
// terminal's Ctrl-C ends hosts while they start.
TEST(Host, OneThatEndsBeforeItGreetsIsSaidToHave) {
  const HostTrouble ended = TroubleOf({"/bin/sh", "-c", "echo nothing to do; exit 3"});
  EXPECT_EQ(ended.kind, HostTrouble::Kind::kDied);
  EXPECT_THAT(ended.message, HasSubstr("ended itself with exit code 3 while it started"));
  EXPECT_THAT(ended.output, HasSubstr("nothing to do"));
  const HostTrouble interrupted = TroubleOf({"/bin/sh", "-c", "kill -INT $$"});
  EXPECT_EQ(interrupted.kind, HostTrouble::Kind::kDied);
  EXPECT_THAT(interrupted.message, HasSubstr("SIGINT"));
}

}  // namespace
}  // namespace assay
