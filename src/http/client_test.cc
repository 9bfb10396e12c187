#include "http/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/scripted_server_testing.h"

namespace assay {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(HttpClient, SendsTheMethodAndABodyOnlyWithAPost) {
  ScriptedServer server({Document(200, "{}")});
  const auto client = MakeHttpClient();
  HttpRequest request;
  request.body = "text";
  for (const char* method : {"GET", "DELETE", "POST"}) {
    request.method = method;
    request.url = server.url() + "/" + method;
    const HttpReply reply = client->Send(request, {});
    EXPECT_EQ(reply.end, HttpReply::End::kWhole) << reply.error;
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, "{}");
  }
  const auto sent = server.requests();
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_THAT(sent[0], AllOf(StartsWith("GET /GET "), Not(HasSubstr("text"))));
  EXPECT_THAT(sent[1], AllOf(StartsWith("DELETE /DELETE "), Not(HasSubstr("text"))));
  EXPECT_THAT(sent[2], AllOf(StartsWith("POST /POST "), HasSubstr("\r\n\r\ntext")));
}

TEST(HttpClient, GivesAStreamAsItComesAndEndsItWhenTold) {
  ScriptedServer server({Stream({"one", "two", "three"}, 20)});
  HttpRequest request;
  request.method = "GET";
  request.url = server.url();
  std::string taken;
  request.take = [&](std::string_view bytes) {
    taken += bytes;
    return taken.find("two") == std::string::npos;
  };
  const HttpReply reply = MakeHttpClient()->Send(request, {});
  EXPECT_EQ(reply.end, HttpReply::End::kWhole);
  EXPECT_EQ(reply.body, "");
  EXPECT_THAT(taken, AllOf(StartsWith("onetwo"), Not(HasSubstr("three"))));
}

TEST(HttpClient, KeepsARefusalOutOfTheStream) {
  ScriptedServer server({Document(401, "who?")});
  HttpRequest request;
  request.method = "GET";
  request.url = server.url();
  bool taken = false;
  request.take = [&](std::string_view) { return taken = true; };
  const HttpReply reply = MakeHttpClient()->Send(request, {});
  EXPECT_EQ(reply.status, 401);
  EXPECT_EQ(reply.body, "who?");
  EXPECT_FALSE(taken);
}

}  // namespace
}  // namespace assay
