#include "http/token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/files.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

class TokenTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_{TemporaryFolder::Create().value()};
  std::string path_ = (folder_.path() / "token").string();
};

TEST_F(TokenTest, ItIsMadeOnceAndForTheUserAlone) {
  const std::string token = ReadOrMakeToken(path_).value();
  EXPECT_EQ(token.size(), 32u);
  EXPECT_EQ(ReadOrMakeToken(path_).value(), token);
  struct stat facts {};
  ASSERT_EQ(::stat(path_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
  ::chmod(path_.c_str(), 0640);
  EXPECT_THAT(ReadOrMakeToken(path_).error().message, HasSubstr("others may read"));
}

TEST_F(TokenTest, AShortOneIsNone) {
  ASSERT_TRUE(WriteFileAtomically(path_, "abc\n"));
  ::chmod(path_.c_str(), 0600);
  EXPECT_THAT(ReadOrMakeToken(path_).error().message, HasSubstr("at least 32 characters"));
  EXPECT_FALSE(ReadOrMakeToken((folder_.path() / "none" / "token").string()));
}

TEST_F(TokenTest, TheGuardAsksForHostAndToken) {
  const std::string token(32, 'a');
  const TokenGuard guard(token, 80);
  const auto status = [&](const std::string& host, const std::string& authorization) {
    ServedRequest request;
    request.headers = {{"host", host}, {"authorization", authorization}};
    const auto refusal = guard.Refuse(request);
    return refusal ? refusal->status : 200;
  };
  EXPECT_EQ(status("127.0.0.1:80", "Bearer " + token), 200);
  EXPECT_EQ(status("localhost:80", "Bearer " + token), 200);
  EXPECT_EQ(status("localhost:81", "Bearer " + token), 403);
  EXPECT_EQ(status("evil.example:80", "Bearer " + token), 403);
  EXPECT_EQ(status("", "Bearer " + token), 403);
  EXPECT_EQ(status("localhost:80", "Bearer " + token + "a"), 401);
  EXPECT_EQ(status("localhost:80", "Bearer " + std::string(32, 'b')), 401);
  EXPECT_EQ(status("localhost:80", token), 401);
  EXPECT_EQ(status("localhost:80", ""), 401);
}

}  // namespace
}  // namespace assay
