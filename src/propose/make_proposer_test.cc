#include "propose/make_proposer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

#include "base/files.h"
#include "http/scripted_server_testing.h"

namespace assay {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kKey = "sk-secret-9876543210";

class MakeProposerTest : public testing::Test {
 protected:
  MakeProposerTest() {
    for (const char* name : {"ASSAY_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"})
      ::unsetenv(name);
  }
  ~MakeProposerTest() override { ::unsetenv("OPENAI_API_KEY"); }
  std::string At(const std::string& name) { return (folder_.path() / name).string(); }
  static std::string ErrorOf(std::string_view text, const ProposerOptions& options = {}) {
    const auto proposer = MakeProposer(text, options);
    EXPECT_FALSE(proposer) << text;
    if (proposer) return "";
    EXPECT_EQ(proposer.error().kind, ErrorKind::kUsage) << text;
    return proposer.error().message;
  }
  TemporaryFolder folder_ = *TemporaryFolder::Create();
};

TEST_F(MakeProposerTest, ListsTheFormsForWhatIsNone) {
  for (const char* text : {"", "gpt-5", "openai:", "chat:x", ":", "replay"})
    EXPECT_THAT(ErrorOf(text), AllOf(HasSubstr("is no proposer"), HasSubstr(ProposerForms()),
                                     HasSubstr("openai:MODEL[@URL]"), HasSubstr("replay:FILE")));
}

TEST_F(MakeProposerTest, ChecksModelsAndUrls) {
  EXPECT_THAT(ErrorOf("openai:m"), HasSubstr("api.openai.com needs a key: set $ASSAY_API_KEY"));
  EXPECT_THAT(ErrorOf("anthropic:m"), HasSubstr("$ANTHROPIC_API_KEY"));
  EXPECT_THAT(ErrorOf("openai:http://localhost:1/v1"), HasSubstr("name a model"));
  EXPECT_THAT(ErrorOf("openai:@http://localhost:1/v1"), HasSubstr("name a model"));
  EXPECT_THAT(ErrorOf("openai:m@http://user:word@host/v1"), HasSubstr("no password"));
  EXPECT_THAT(ErrorOf("openai:m@https://host/v1?key=abc"), HasSubstr("no '?'"));
  for (const char* url : {"http://", "https://[::1]x/v1", "http://host:port", "http://a b/v1"})
    EXPECT_THAT(ErrorOf(std::string("openai:m@") + url), HasSubstr("a URL begins with")) << url;
  EXPECT_THAT(ErrorOf("openai:m@http://localhost:1", {.models_file = At("missing.toml")}),
              HasSubstr("missing.toml"));
  const auto proposer = MakeProposer("openai:org/m@v2@http://localhost:1/v1", {});
  ASSERT_TRUE(proposer) << proposer.error().message;
  EXPECT_EQ((*proposer)->Name(), "openai:org/m@v2@http://localhost:1/v1");
}

TEST_F(MakeProposerTest, SendsNoKeyForAllToRead) {
  ASSERT_TRUE(WriteFileAtomically(At("key"), kKey));
  EXPECT_THAT(ErrorOf("openai:m@http://gpu-box:8000/v1", {.key_file = At("key")}),
              AllOf(HasSubstr("for all to read"), Not(HasSubstr(kKey))));
  ::setenv("OPENAI_API_KEY", kKey.data(), 1);
  EXPECT_TRUE(MakeProposer("openai:m@http://gpu-box:8000/v1", {}));  // asked without the key
  EXPECT_TRUE(MakeProposer("openai:m", {}));
  for (const char* url : {"http://localhost.example/v1", "http://127.0.0.1.example"})
    EXPECT_THAT(ErrorOf(std::string("openai:m@") + url, {.key_file = At("key")}),
                HasSubstr("for all to read"));
  for (const char* url : {"http://localhost:1/v1", "http://[::1]:1", "https://gpu-box/v1"})
    EXPECT_TRUE(MakeProposer(std::string("openai:m@") + url, {.key_file = At("key")})) << url;
}

TEST_F(MakeProposerTest, OpensTheOthers) {
  EXPECT_THAT(ErrorOf("command:no-such-program-anywhere x"), HasSubstr("no program"));
  EXPECT_THAT(ErrorOf("replay:" + At("missing.jsonl")), HasSubstr("missing.jsonl"));
  EXPECT_TRUE(MakeProposer("inbox:" + At("in"), {}));
  const auto proposer = MakeProposer("command:echo hi", {.record_file = At("t.jsonl")});
  ASSERT_TRUE(proposer) << proposer.error().message;
  EXPECT_EQ((*proposer)->Propose({"k", "", "p"}, {}).value_or(Answer{}).text, "hi\n");
  const auto replay = MakeProposer("replay:" + At("t.jsonl"), {});
  ASSERT_TRUE(replay) << replay.error().message;
  EXPECT_EQ((*replay)->Propose({"k", "", "p"}, {}).value_or(Answer{}).text, "hi\n");
}

// A whole search's worth of files, with a server that echoes all that it is sent.
TEST_F(MakeProposerTest, WritesTheKeyNowhere) {
  const std::string said =
      fmt::format(R"({{"model":"{0}","choices":[{{"message":{{"content":"{0}","reasoning":"{0}"}},)"
                  R"("finish_reason":"{0}"}}]}})",
                  kKey);
  ScriptedServer server({Document(500, kKey), Document(200, said),
                         Document(403, fmt::format(R"({{"error":"bad key {}"}})", kKey))});
  ::setenv("OPENAI_API_KEY", kKey.data(), 1);
  const std::string name = "openai:m@" + server.url() + "/v1";
  const auto proposer = MakeProposer(name, {.record_file = At("t.jsonl"), .provenance = "a test"});
  ASSERT_TRUE(proposer) << proposer.error().message;
  EXPECT_TRUE((*proposer)->Propose({"k/1", "", "p"}, {}));
  const auto refused = (*proposer)->Propose({"k/2", "", "p"}, {});
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("HTTP 403"), Not(HasSubstr(kKey))));
  EXPECT_THAT(server.requests().back(),
              AllOf(HasSubstr("POST /v1/chat/completions"), HasSubstr(kKey)));
  size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
    ++files;
    EXPECT_THAT(ReadFile(entry.path(), 1 << 20).value_or(""), Not(HasSubstr(kKey)));
  }
  EXPECT_EQ(files, 1u);
}

}  // namespace
}  // namespace assay
