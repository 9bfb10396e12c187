#include "http/server.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "http/client_testing.h"

namespace assay {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Echoes requests until the test ends.
class Serving : public ::testing::Test {
 protected:
  void Begin(ServerLimits limits = {}) {
    auto server = HttpServer::Listen(0, limits);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    port_ = server_->port();
    handlers_.fault = [](int status, const std::string& why) {
      return ServedReply{status, "fault: " + why, "text/plain"};
    };
    if (!handlers_.answer)
      handlers_.answer = [](const ServedRequest& request) {
        return ServedReply{200,
                           fmt::format("{} {} [{}]", request.method, request.target, request.body),
                           "text/plain"};
      };
    handlers_.over = [this] { return over_.load(); };
    thread_ = std::thread([this] { server_->Serve(handlers_); });
  }
  void End() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void TearDown() override { End(); }

  static std::string Request(const std::string& line, const std::string& body = "",
                             const std::string& headers = "") {
    return fmt::format("{} HTTP/1.1\r\nHost: here\r\n{}Content-Length: {}\r\n\r\n{}", line, headers,
                       body.size(), body);
  }

  ServerHandlers handlers_;
  std::unique_ptr<HttpServer> server_;
  int port_ = 0;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

TEST_F(Serving, AConnectionCarriesSeveralRequests) {
  Begin();
  const TestClient client(port_);
  client.Send(Request("GET /a?b=c"));
  EXPECT_THAT(client.Read("]"), AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("GET /a?b=c []"),
                                      HasSubstr("Content-Type: text/plain")));
  // Two at once, their replies in order.
  client.Send(Request("POST /", "one") + Request("POST /", "two"));
  EXPECT_THAT(client.Read("[two]"), HasSubstr("[one]"));
}

TEST_F(Serving, ABodyMayComeInChunksAndAHeadHasNone) {
  Begin();
  const TestClient client(port_);
  client.Send("POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  client.Send("4\r\ndefg\r\n0\r\n\r\n");
  EXPECT_THAT(client.Read("]"), HasSubstr("POST / [abcdefg]"));
  client.Send(Request("HEAD /x") + Request("GET /y"));
  EXPECT_THAT(client.Read("]"), AllOf(HasSubstr("Content-Length: 10"), Not(HasSubstr("HEAD /x")),
                                      HasSubstr("GET /y []")));
}

TEST_F(Serving, ALargeTextIsCompressedForAPeerThatAsksForIt) {
  handlers_.answer = [](const ServedRequest& request) {
    return ServedReply{200, std::string(request.target == "/large" ? 100'000 : 10, 'a') + "]",
                       "text/html; charset=utf-8"};
  };
  Begin();
  const auto reply = [&](const std::string& line, const std::string& headers) {
    const TestClient client(port_);
    client.Send(Request(line, "", headers + "Connection: close\r\n"));
    return client.ReadAll();
  };
  const std::string packed = reply("GET /large", "Accept-Encoding: gzip, br\r\n");
  EXPECT_THAT(packed, AllOf(HasSubstr("Content-Encoding: gzip\r\n"),
                            HasSubstr("Vary: Accept-Encoding\r\n")));
  EXPECT_LT(packed.size(), 2'000u);
  EXPECT_THAT(reply("GET /large", ""),
              AllOf(Not(HasSubstr("Content-Encoding")), HasSubstr("Vary: Accept-Encoding\r\n"),
                    HasSubstr("Content-Length: 100001\r\n")));
  EXPECT_THAT(reply("GET /small", "Accept-Encoding: gzip\r\n"),
              AllOf(Not(HasSubstr("Content-Encoding")), HasSubstr("aaaaaaaaaa]")));
  // A head tells the length of the same body.
  const std::string head = reply("HEAD /large", "Accept-Encoding: gzip, br\r\n");
  EXPECT_EQ(head, packed.substr(0, packed.find("\r\n\r\n") + 4));
}

TEST_F(Serving, ARefusalComesBeforeTheBody) {
  handlers_.refuse = [](const ServedRequest& request) -> std::optional<ServedReply> {
    if (request.Header("authorization") == "me") return std::nullopt;
    return ServedReply{401, "who?", "text/plain", {{"WWW-Authenticate", "Bearer"}}};
  };
  Begin();
  const TestClient client(port_);
  client.Send("POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 1000000\r\n\r\nstart");
  EXPECT_THAT(client.ReadAll(),
              AllOf(StartsWith("HTTP/1.1 401"), HasSubstr("WWW-Authenticate"), HasSubstr("who?")));
  const TestClient known(port_);
  known.Send(Request("POST /", "in", "Authorization: me\r\nExpect: 100-continue\r\n"));
  EXPECT_THAT(known.Read("]"), AllOf(StartsWith("HTTP/1.1 100 Continue"), HasSubstr("[in]")));
}

TEST_F(Serving, WhatIsTooLargeOrNoRequestIsToldSo) {
  Begin({.header_bytes_max = 512, .body_bytes_max = 10});
  const auto reply = [&](const std::string& bytes) {
    const TestClient client(port_);
    client.Send(bytes);
    return client.ReadAll();
  };
  EXPECT_THAT(reply(Request("POST /", "12345678901")), StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(reply("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n12345678901\r\n"),
              StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(reply(Request("GET /", "", "X: " + std::string(1000, 'x') + "\r\n")),
              StartsWith("HTTP/1.1 431"));
  // The line and the fields count together: each is within the limit, both are not.
  const std::string line = "GET /" + std::string(300, 'a'), field = "X: " + std::string(300, 'x');
  EXPECT_THAT(reply(Request(line, "", field + "\r\n")), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(reply(Request(line, "", "Connection: close\r\n")), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(reply("rubbish\r\n\r\n"), AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("fault: ")));
  EXPECT_THAT(reply(Request("POST /", "1234567890")), HasSubstr("[1234567890]"));
}

// A peer that was still sending once got a reset in the place of the reply.
TEST_F(Serving, ARefusalReachesAPeerThatIsStillSending) {
  handlers_.refuse = [](const ServedRequest&) {
    return ServedReply{413, "too large", "text/plain"};
  };
  Begin();
  const TestClient client(port_);
  client.Send(Request("POST /", std::string(5'000'000, 'x')));
  EXPECT_THAT(client.ReadAll(), AllOf(StartsWith("HTTP/1.1 413"), HasSubstr("too large")));
}

// A request of an unknown transfer encoding once passed for one without a body: if it was refused,
// the server answered what followed as a request of its own, which a proxy had taken for the body.
TEST_F(Serving, ARequestThatMayBeReadInTwoWaysEndsItsConnection) {
  handlers_.refuse = [](const ServedRequest&) {
    return ServedReply{411, "no length", "text/plain"};
  };
  Begin();
  const std::string hidden = Request("GET /hidden");
  for (const std::string header :
       {"Transfer-Encoding: xchunked", "Transfer-Encoding: identity",
        "Transfer-Encoding: chunked, identity", "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
        "Content-Length: 0\r\nTransfer-Encoding: xchunked", "Host: other",
        "Content-Length: 0\r\nContent-Length: 0"}) {
    const TestClient client(port_);
    client.Send("POST / HTTP/1.1\r\nHost: here\r\n" + header + "\r\n\r\n" + hidden);
    const std::string reply = client.ReadAll();
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 400")) << header;
    EXPECT_EQ(reply.rfind("HTTP/1.1"), 0U) << header << ": " << reply;
  }
}

TEST_F(Serving, ASilentPeerIsCutOffAndMakesRoomForAnother) {
  Begin({.connections_max = 1, .idle_ms = 200});
  const TestClient silent(port_);
  silent.Send("POST / HT");
  const TestClient waits(port_);
  waits.Send(Request("GET /"));
  EXPECT_EQ(silent.ReadAll(), "");
  EXPECT_THAT(waits.Read("]"), HasSubstr("GET / []"));
}

TEST_F(Serving, ASlowAnswerHoldsUpNobodyAndIsGivenBeforeTheEnd) {
  std::mutex mutex;
  std::condition_variable changed;
  bool begun = false, may_end = false;
  handlers_.answer = [&](const ServedRequest& request) {
    if (request.target == "/slow") {
      std::unique_lock lock(mutex);
      begun = true;
      changed.notify_all();
      changed.wait(lock, [&] { return may_end; });
    }
    return ServedReply{200, "done " + request.target + "]", "text/plain"};
  };
  Begin();
  const TestClient slow(port_), quick(port_);
  slow.Send(Request("GET /slow"));
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(5), [&] { return begun; }));
  }
  quick.Send(Request("GET /quick"));
  EXPECT_THAT(quick.Read("]"), HasSubstr("done /quick"));
  over_ = true;
  // Nobody new is let in once it ends.
  for (int tries = 0; tries < 100 && TestClient(port_).connected(); ++tries) ::poll(nullptr, 0, 20);
  EXPECT_FALSE(TestClient(port_).connected());
  {
    const std::scoped_lock lock(mutex);
    may_end = true;
    changed.notify_all();
  }
  EXPECT_THAT(slow.ReadAll(), AllOf(HasSubstr("done /slow"), HasSubstr("Connection: close")));
  End();
}

TEST_F(Serving, ATakenPortIsTheCallersFault) {
  Begin();
  const auto second = HttpServer::Listen(port_, {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(second.error().message, HasSubstr("give another one, or 0 for any"));
}

}  // namespace
}  // namespace assay
