// A server, a worker and a clock for the tests of runners and of submitted jobs.
#pragma once

#include <fmt/format.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "http/client.h"
#include "runner/server_link.h"
#include "worker_client/fleet.h"

namespace assay {

// Answers calls as a function of the test says, without a network.
class FakeServer : public HttpClient {
 public:
  using Answer = std::function<HttpReply(const HttpRequest& request)>;
  explicit FakeServer(Answer answer) : answer_(std::move(answer)) {}
  HttpReply Send(const HttpRequest& request, StopToken) override { return answer_(request); }

  static HttpReply Says(int status, std::string body, std::string retry_after = "") {
    HttpReply reply;
    reply.end = HttpReply::End::kWhole;
    reply.status = status;
    reply.body = std::move(body);
    reply.content_type = "application/json";
    reply.retry_after = std::move(retry_after);
    return reply;
  }
  static HttpReply IsAway() {
    HttpReply reply;
    reply.end = HttpReply::End::kNotReached;
    reply.error = "connection refused";
    return reply;
  }

 private:
  const Answer answer_;
};

inline ServerLink LinkTo(FakeServer::Answer answer) {
  return ServerLink("http://127.0.0.1:1", ApiKey(),
                    std::make_unique<FakeServer>(std::move(answer)));
}

// A clock that moves by waits alone, and by `tick_s` with each look at it.
struct FakeTime {
  int64_t now_ns = 0;
  double tick_s = 0;
  std::vector<double> waits;

  RepeatSurroundings Repeats() {
    return {[this] { return now_ns += static_cast<int64_t>(tick_s * 1e9); },
            [this](double seconds, StopToken stop) {
              waits.push_back(seconds);
              now_ns += static_cast<int64_t>(seconds * 1e9);
              return !stop.stopped();
            },
            [] { return uint64_t{0}; }};
  }
};

// One worker, which says what a function of the test tells for each line that it is sent.
class OneWorker : public Fleet {
 public:
  using Answer = std::function<std::vector<std::string>(const std::string& request)>;
  static constexpr const char* kDies = "it dies";  // in place of a line
  explicit OneWorker(Answer answer) : answer_(std::move(answer)) {}

  size_t size() const override { return 1; }
  std::string Name(size_t) const override { return "cpu"; }
  Result<void> Start(size_t, int) override {
    ++starts;
    said_.clear();
    if (!starts_well)
      Say({kDies});
    else
      Say({R"({"event":"ready"})"});
    return {};
  }
  void Send(size_t, const std::string& line) override {
    requests.push_back(line);
    Say(answer_(requests.back()));
  }
  void Kill(size_t) override {
    ++kills;
    said_.clear();
  }
  void Release(size_t) override {}
  void Interrupt(size_t) override {}
  std::optional<Said> Wait(int) override {
    if (said_.empty()) {
      if (idle) idle();
      return std::nullopt;
    }
    Said said = said_.front();
    said_.pop_front();
    if (!said.line) said_.clear();
    return said;
  }

  std::vector<std::string> requests;
  int starts = 0, kills = 0;
  bool starts_well = true;
  std::function<void()> idle;  // called when it has nothing to say

 private:
  void Say(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) {
      if (line == kDies)
        said_.push_back({0, std::nullopt, "was killed by signal 9"});
      else
        said_.push_back({0, line, ""});
    }
  }

  const Answer answer_;
  std::deque<Said> said_;
};

inline bool IsCancel(const std::string& request) {
  return request.find(R"("request":"cancel")") != std::string::npos;
}
inline const char* const kWorkerCancelled =
    R"({"event":"error","id":"job","kind":"interrupted","message":"interrupted"})";
inline std::string WorkerVerdict(const std::string& outcome) {
  return fmt::format(
      R"({{"event":"verdict","id":"job","candidate":0,"verdict":{{"outcome":"{}"}}}})", outcome);
}
inline const char* const kWorkerDone = R"({"event":"done","id":"job"})";
inline std::string WorkerProgress(const std::string& stage) {
  return fmt::format(R"({{"event":"progress","id":"job","stage":"{}","text":"{}","fraction":0.5}})",
                     stage, stage);
}

}  // namespace assay
