#include "runner/server_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/scripted_server_testing.h"
#include "runner/runner_testing.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Kind = ServerReply::Kind;

TEST(ParseServerUrl, TakesHttpsAndPlainHttpOnThisMachineAlone) {
  EXPECT_EQ(ParseServerUrl("https://a.example/assay/").value(), "https://a.example/assay");
  EXPECT_EQ(ParseServerUrl("http://127.0.0.1:8080").value(), "http://127.0.0.1:8080");
  EXPECT_EQ(ParseServerUrl("http://localhost:1/").value(), "http://localhost:1");
  EXPECT_TRUE(ParseServerUrl("http://[::1]:8080"));
  for (const char* url : {"http://a.example", "http://192.168.0.7:80", "http://127.0.0.1.a.example",
                          "http://localhost@a.example"})
    EXPECT_EQ(ParseServerUrl(url).error().kind, ErrorKind::kUsage) << url;
  EXPECT_THAT(ParseServerUrl("http://a.example").error().message, HasSubstr("use https"));
}

TEST(ParseServerUrl, RefusesWhatIsNoPlainUrl) {
  for (const char* url : {"", "a.example", "ftp://a.example", "https://me:secret@a.example",
                          "https://a.example?x=1", "https://a.example#x", "file:///etc/passwd"})
    EXPECT_FALSE(ParseServerUrl(url)) << url;
  EXPECT_THAT(ParseServerUrl("https://me:secret@a.example").error().message,
              Not(HasSubstr("secret")));
}

TEST(ServerLink, SendsTheTokenAsAHeader) {
  ScriptedServer server({Document(200, R"({"job":{}})")});
  std::string token = "0123456789abcdef";
  const ServerLink link(server.url(), ApiKey::Take(token, "a test").value(), MakeHttpClient());
  ServerCall call;
  call.method = "POST";
  call.path = "/api/jobs";
  call.body = "{}";
  const ServerReply reply = link.Call(call, {});
  EXPECT_EQ(reply.kind, Kind::kDone) << reply.error.message;
  EXPECT_EQ(reply.body, R"({"job":{}})");
  const std::string sent = server.requests().at(0);
  EXPECT_THAT(sent, HasSubstr("POST /api/jobs HTTP"));
  EXPECT_THAT(sent, HasSubstr("authorization: Bearer 0123456789abcdef\r\n"));
}

ServerReply ReplyTo(HttpReply reply) {
  return LinkTo([&](const HttpRequest&) { return reply; }).Call({}, {});
}

TEST(ServerLink, TellsWhetherToTryAgain) {
  EXPECT_EQ(ReplyTo(FakeServer::Says(204, "")).kind, Kind::kDone);
  for (const int status : {408, 429, 500, 502, 503})
    EXPECT_EQ(ReplyTo(FakeServer::Says(status, "")).kind, Kind::kLater) << status;
  for (const int status : {400, 403, 404, 409, 413})
    EXPECT_EQ(ReplyTo(FakeServer::Says(status, "")).kind, Kind::kRefused) << status;
  EXPECT_EQ(ReplyTo(FakeServer::Says(401, "")).kind, Kind::kNoToken);
  EXPECT_EQ(ReplyTo(FakeServer::IsAway()).kind, Kind::kLater);
  EXPECT_EQ(ReplyTo(FakeServer::Says(429, "", "30")).wait_s, 30);
  HttpReply moved = FakeServer::Says(301, "");
  moved.location = "https://b.example/";
  EXPECT_EQ(ReplyTo(moved).kind, Kind::kRefused);
  EXPECT_THAT(ReplyTo(moved).error.message, HasSubstr("https://b.example/"));
}

TEST(ServerLink, GivesTheServersMessageAsOneLine) {
  const std::string body = R"({"error":{"kind":"usage","message":"no such\nproblem\u001b[31m"}})";
  EXPECT_EQ(ReplyTo(FakeServer::Says(400, body)).error.message,
            "http://127.0.0.1:1: no such problem [31m");
  EXPECT_EQ(ReplyTo(FakeServer::Says(404, "")).error.message, "http://127.0.0.1:1: HTTP 404");
}

}  // namespace
}  // namespace assay
