#include "runner/submitted_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <nlohmann/json.hpp>

#include "runner/runner_testing.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

std::string JobText(const std::string& state, int place = 0) {
  return Json{{"job",
               {{"id", 17},
                {"state", state},
                {"place", place},
                {"problem", "softmax"},
                {"verdict", state == "done" ? Json("3f2a") : Json()}}}}
      .dump();
}

std::string Event(int number, const std::string& text) {
  return fmt::format("id: {}\ndata: {{\"event\":\"progress\",\"text\":\"{}\"}}\n\n", number, text);
}

class Submitting : public ::testing::Test {
 protected:
  Submitting() {
    events_.job = [this](const JobStatus& job) {
      moves_.push_back(fmt::format("{} {}", job.state, job.place));
    };
    events_.event = [this](const std::string& event) {
      told_.push_back(Json::parse(event).value("text", "ended"));
    };
  }
  HttpReply Answer(const HttpRequest& request) {
    if (request.url.find("/events") == std::string::npos) {
      posts_.push_back(request.body);
      if (replies_.empty()) return FakeServer::IsAway();
      HttpReply reply = replies_.front();
      if (replies_.size() > 1) replies_.pop_front();
      return reply;
    }
    asked_.push_back(request.url.substr(request.url.find("after=")));
    return stream_(request);
  }
  // A stream that brings these bytes, and then ends or breaks off.
  static HttpReply Streamed(const HttpRequest& request, const std::string& bytes, bool broken) {
    HttpReply reply = FakeServer::Says(200, "");
    reply.content_type = "text/event-stream";
    if (request.take && !request.take(bytes)) return reply;
    if (broken) reply.end = HttpReply::End::kBroken;
    return reply;
  }
  Result<JobStatus> Follow() {
    const ServerLink link = LinkTo([this](const HttpRequest& request) { return Answer(request); });
    return SubmittedJob(link, time_.Repeats(), {}, events_).Follow("17", {});
  }

  FakeTime time_;
  FollowEvents events_;
  std::deque<HttpReply> replies_;  // to all but calls for events; the last is repeated
  std::function<HttpReply(const HttpRequest&)> stream_;
  std::vector<std::string> posts_, asked_, moves_, told_;
};

TEST_F(Submitting, ShowsThePlaceThenTheEventsThenTheEnd) {
  for (const std::string& text :
       {JobText("queued", 2), JobText("queued", 1), JobText("running"), JobText("done")})
    replies_.push_back(FakeServer::Says(200, text));
  stream_ = [](const HttpRequest& request) {
    return Streamed(
        request,
        Event(1, "a") + Event(2, "b") + "id: 3\ndata: {\"event\":\"ended\",\"state\":\"done\"}\n\n",
        false);
  };
  const auto job = Follow();
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->verdict, "3f2a");
  EXPECT_THAT(moves_, ElementsAre("queued 2", "queued 1", "running 0", "done 0"));
  EXPECT_THAT(told_, ElementsAre("a", "b", "ended"));
}

TEST_F(Submitting, AStreamThatBreaksOffGoesOnWhereItWas) {
  replies_ = {FakeServer::Says(200, JobText("running")), FakeServer::Says(200, JobText("running")),
              FakeServer::Says(200, JobText("running")), FakeServer::Says(200, JobText("done"))};
  int streams = 0;
  stream_ = [&](const HttpRequest& request) {
    ++streams;
    if (streams == 1) return Streamed(request, Event(1, "a") + "id: 2\ndata: {\"tex", true);
    if (streams == 2) return FakeServer::IsAway();
    // The server may repeat events.
    return Streamed(request, Event(1, "a") + Event(2, "b"), false);
  };
  ASSERT_TRUE(Follow());
  EXPECT_THAT(told_, ElementsAre("a", "b"));
  EXPECT_THAT(asked_, ElementsAre("after=0", "after=1", "after=1"));
}

TEST_F(Submitting, AsksForEventsWhereThereIsNoStream) {
  replies_ = {FakeServer::Says(200, JobText("running")), FakeServer::Says(200, JobText("running")),
              FakeServer::Says(200, JobText("done"))};
  int calls = 0;
  stream_ = [&](const HttpRequest& request) {
    if (request.take) return FakeServer::Says(406, "");
    ++calls;
    return FakeServer::Says(
        200, fmt::format(R"({{"events":[{{"number":{},"time":"","event":{{"text":"{}"}}}}]}})",
                         calls, calls));
  };
  ASSERT_TRUE(Follow());
  EXPECT_THAT(told_, ElementsAre("1", "2"));
}

TEST_F(Submitting, IsOneJobHoweverOftenItIsSent) {
  replies_ = {FakeServer::IsAway(), FakeServer::Says(503, ""),
              FakeServer::Says(202, JobText("queued", 3))};
  const ServerLink link = LinkTo([this](const HttpRequest& request) { return Answer(request); });
  const auto job = SubmittedJob(link, time_.Repeats(), {}, events_)
                       .Submit({"softmax", "tiny", "mine.cpp", "int a;", {}, "", "key"}, {});
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->id, "17");
  EXPECT_EQ(job->place, 3);
  ASSERT_EQ(posts_.size(), 3u);
  EXPECT_EQ(posts_[0], posts_[2]);
  EXPECT_EQ(Json::parse(posts_[0]), Json({{"problem", "softmax"},
                                          {"size", "tiny"},
                                          {"name", "mine.cpp"},
                                          {"source", "int a;"},
                                          {"key", "key"}}));
}

TEST_F(Submitting, ARefusalAndALongWaitEndIt) {
  const ServerLink link = LinkTo([this](const HttpRequest& request) { return Answer(request); });
  SubmittedJob job(link, time_.Repeats(), {}, events_);
  replies_ = {FakeServer::Says(403, R"({"error":{"message":"the deadline is over"}})")};
  EXPECT_THAT(job.Submit({}, {}).error().message, HasSubstr("the deadline is over"));
  replies_ = {FakeServer::Says(429, R"({"error":{"message":"the quota is spent"}})", "7200")};
  const auto refused = job.Submit({}, {});
  EXPECT_EQ(refused.error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(refused.error().message, HasSubstr("7200 s"));
  EXPECT_TRUE(time_.waits.empty());
}

TEST_F(Submitting, GivesUpAServerThatStaysAway) {
  EXPECT_EQ(Follow().error().kind, ErrorKind::kEnvironment);
  EXPECT_GT(time_.now_ns, int64_t{500'000'000'000});
}

TEST_F(Submitting, RefusesHandlesThatAreNone) {
  const ServerLink link = LinkTo([this](const HttpRequest& request) { return Answer(request); });
  SubmittedJob job(link, time_.Repeats(), {}, events_);
  for (const char* id : {"", "../1", "1?x", "1/events"}) EXPECT_FALSE(job.Look(id, {})) << id;
  EXPECT_TRUE(posts_.empty());
}

}  // namespace
}  // namespace assay
