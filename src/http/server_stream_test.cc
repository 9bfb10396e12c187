// Streams, waits and slow peers.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "http/client_testing.h"
#include "http/server.h"

namespace assay {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Streaming : public ::testing::Test {
 protected:
  void Begin(ServerLimits limits = {}) {
    auto server = HttpServer::Listen(0, limits);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    handlers_.fault = [](int status, const std::string& why) {
      return ServedReply{status, why, "text/plain"};
    };
    handlers_.answer = [this](const ServedRequest& request) { return Answer(request); };
    handlers_.over = [this] { return over_.load(); };
    thread_ = std::thread([this] { server_->Serve(handlers_); });
  }
  void TearDown() override {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void Say(const std::string& text) {
    {
      const std::scoped_lock lock(mutex_);
      said_ += text;
    }
    server_->Wake("news");
  }
  // /stream: all that was said; /wait: the first that is said, or "nothing".
  ServedReply Answer(const ServedRequest& request) {
    ServedReply reply;
    if (request.target == "/stream") {
      auto sent = std::make_shared<size_t>(0);
      const auto next = [this, sent]() -> std::optional<std::string> {
        const std::scoped_lock lock(mutex_);
        std::string part = said_.substr(*sent);
        *sent = said_.size();
        if (part.find("end") != std::string::npos) return std::nullopt;
        return part;
      };
      reply.content_type = "text/event-stream";
      reply.stream = std::make_shared<ServedStream>(ServedStream{"news", next, 60'000});
    } else if (request.target == "/once") {
      ServedStream stream{"news", [] { return std::optional<std::string>("last"); }, 60'000};
      stream.ended = [] { return true; };
      reply.stream = std::make_shared<ServedStream>(std::move(stream));
    } else if (request.target.starts_with("/wait")) {
      const int wait_ms = std::stoi(request.target.substr(5));
      const auto ask = [this](bool last) -> std::optional<ServedReply> {
        ++asked_;
        const std::scoped_lock lock(mutex_);
        if (said_.empty() && !last) return std::nullopt;
        return ServedReply{200, said_.empty() ? "nothing" : said_, "text/plain"};
      };
      reply.wait = std::make_shared<ServedWait>(ServedWait{"news", wait_ms, ask});
    } else {
      reply = {200, "answer to " + request.peer, "text/plain"};
    }
    return reply;
  }
  static std::string Get(const std::string& target) {
    return fmt::format("GET {} HTTP/1.1\r\nHost: here\r\n\r\n", target);
  }

  ServerHandlers handlers_;
  std::unique_ptr<HttpServer> server_;
  std::mutex mutex_;
  std::string said_;
  std::atomic<int> asked_ = 0;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

TEST_F(Streaming, PartsComeAsTheyAreSaid) {
  Begin();
  const TestClient client(server_->port());
  client.Send(Get("/stream"));
  EXPECT_THAT(client.Read("\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("Transfer-Encoding: chunked")));
  Say("one");
  EXPECT_THAT(client.Read("one"), HasSubstr("one"));
  Say("two");
  EXPECT_THAT(client.Read("two"), HasSubstr("two"));
  Say("end");
  EXPECT_THAT(client.ReadAll(), HasSubstr("0\r\n\r\n"));
}

TEST_F(Streaming, ManyStreamsHoldNoThread) {
  Begin({.connections_max = 400, .handlers = 2});
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 300; ++i) {
    clients.push_back(std::make_unique<TestClient>(server_->port()));
    clients.back()->Send(Get("/stream"));
  }
  const TestClient other(server_->port());
  other.Send(Get("/"));
  EXPECT_THAT(other.Read("127.0.0.1"), HasSubstr("answer to 127.0.0.1"));
  for (const auto& client : clients) client->Read("\r\n\r\n");
  Say("all of you");
  for (const auto& client : clients) EXPECT_THAT(client->Read("you"), HasSubstr("all of you"));
  const int64_t begin = MonotonicNs();
  over_ = true;
  thread_.join();
  EXPECT_LT(MonotonicNs() - begin, 3'000'000'000) << "the end waits for no stream";
}

TEST_F(Streaming, AWaitEndsWithNewsOrItsTime) {
  Begin();
  const TestClient brief(server_->port()), patient(server_->port());
  brief.Send(Get("/wait100"));
  patient.Send(Get("/wait60000"));
  EXPECT_THAT(brief.Read("nothing"), HasSubstr("nothing"));
  Say("news");
  EXPECT_THAT(patient.Read("news"), HasSubstr("news"));
}

TEST_F(Streaming, NobodyIsAskedForAPeerThatHasGone) {
  Begin();
  {
    const TestClient gone(server_->port());
    gone.Send(Get("/wait60000"));
    while (asked_ == 0) std::this_thread::yield();
  }
  const TestClient patient(server_->port());
  patient.Send(Get("/wait60000"));
  while (asked_ < 2) std::this_thread::yield();
  Say("news");
  EXPECT_THAT(patient.Read("news"), HasSubstr("news"));
  EXPECT_EQ(asked_, 3);
}

TEST_F(Streaming, WaitsAreAnsweredAtTheEnd) {
  Begin();
  const TestClient patient(server_->port());
  patient.Send(Get("/wait60000"));
  while (asked_ == 0) std::this_thread::yield();
  over_ = true;
  EXPECT_THAT(patient.ReadAll(), HasSubstr("nothing"));
}

TEST_F(Streaming, SlowPeersAreCutOff) {
  Begin({.idle_ms = 300, .header_ms = 200, .body_bytes_s_min = 1'000'000});
  const TestClient header(server_->port()), body(server_->port());
  const auto trickle = [](const TestClient& client, const std::string& text) {
    const int64_t begin = MonotonicNs();
    for (const char c : text) {
      client.Send(std::string(1, c));
      if (client.Read("\n", 20) != "" || MonotonicNs() - begin > 3'000'000'000) break;
    }
    client.ReadAll();
    return MonotonicNs() - begin;
  };
  EXPECT_LT(trickle(header, Get("/" + std::string(200, 'a'))), 2'000'000'000);
  body.Send("POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 1000\r\n\r\n");
  EXPECT_LT(trickle(body, std::string(150, 'b')), 2'000'000'000);
}

TEST_F(Streaming, SilentPeersMakeRoom) {
  Begin({.connections_max = 20, .silent_ms = 100});
  std::vector<std::unique_ptr<TestClient>> silent;
  for (int i = 0; i < 40; ++i) {
    silent.push_back(std::make_unique<TestClient>(server_->port()));
    silent.back()->Send("GET / HT");
  }
  const TestClient client(server_->port());
  client.Send(Get("/"));
  EXPECT_THAT(client.Read("127.0.0.1"), HasSubstr("answer to"));
}

}  // namespace
}  // namespace assay
