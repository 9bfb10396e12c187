#include "runner/submitted_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

namespace assay {
namespace {

using Json = nlohmann::ordered_json;
using Kind = ServerReply::Kind;

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// A member as text: a number as it is written. Empty: none, or null.
std::string TextOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : Dump(*found);
}

int64_t NumberOf(const std::string& text) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string JobPath(const std::string& id, const std::string& more = "") {
  return fmt::format("/api/jobs/{}{}", id, more);
}

Result<void> CheckId(const std::string& id) {
  const auto is_plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  if (!id.empty() && std::ranges::all_of(id, is_plain)) return {};
  return UsageError(fmt::format("{} is no job: give the handle that assay submit told", id));
}

}  // namespace

Result<JobStatus> ParseJob(const std::string& body) {
  const Json json = Json::parse(body, nullptr, false);
  if (!json.is_object() || !json.contains("job") || !json["job"].is_object())
    return EnvironmentError("the server's reply is no job: is it an assay serve of this version?");
  const Json& job = json["job"];
  JobStatus view{TextOf(job, "id"),
                 TextOf(job, "state"),
                 TextOf(job, "problem"),
                 TextOf(job, "size"),
                 TextOf(job, "name"),
                 TextOf(job, "outcome"),
                 TextOf(job, "verdict"),
                 TextOf(job, "failure"),
                 TextOf(job, "runner"),
                 NumberOf(TextOf(job, "place")),
                 TextOf(job, "for_nobody") == "true",
                 Dump(job)};
  ASSAY_RETURN_IF_ERROR(CheckId(view.id));
  return view;
}

SubmittedJob::SubmittedJob(const ServerLink& server, RepeatSurroundings repeats, FollowTerms terms,
                           FollowEvents events)
    : server_(server),
      repeats_(std::move(repeats)),
      terms_(std::move(terms)),
      events_(std::move(events)) {}

Result<std::string> SubmittedJob::Ask(const ServerCall& call, StopToken stop) {
  const int64_t begin_ns = repeats_.now_ns();
  for (int attempt = 1;; ++attempt) {
    ServerReply reply = server_.Call(call, stop);
    if (reply.kind == Kind::kDone) return std::move(reply.body);
    if (reply.kind != Kind::kLater) return std::unexpected(reply.error);
    const double away_s = static_cast<double>(repeats_.now_ns() - begin_ns) / 1e9;
    const double wait_s = std::max(BackOffSeconds(terms_.back_off, attempt, repeats_.random()),
                                   reply.wait_s.value_or(0));
    if (away_s + wait_s > terms_.away_s_max || reply.wait_s.value_or(0) > terms_.busy_s_max) {
      if (reply.wait_s)
        reply.error.message += fmt::format("; it asks to wait {:.0f} s", *reply.wait_s);
      return std::unexpected(reply.error);
    }
    if (attempt == 1) events_.notice(reply.error.message + "; tries again");
    if (!repeats_.wait(wait_s, stop)) return Fail(ErrorKind::kInterrupted, "interrupted");
  }
}

Result<JobStatus> SubmittedJob::Submit(const SubmitRequest& submission, StopToken stop) {
  Json body = {{"problem", submission.problem},
               {"name", submission.name},
               {"source", submission.source},
               {"key", submission.key}};
  if (!submission.size.empty()) body["size"] = submission.size;
  if (!submission.set.empty()) body["set"] = submission.set;
  if (!submission.against.empty()) body["against"] = submission.against;
  ServerCall call;
  call.method = "POST";
  call.path = "/api/jobs";
  call.body = Dump(body);
  ASSAY_ASSIGN_OR_RETURN(const std::string reply, Ask(call, stop));
  return ParseJob(reply);
}

Result<JobStatus> SubmittedJob::Look(const std::string& id, StopToken stop) {
  ASSAY_RETURN_IF_ERROR(CheckId(id));
  ServerCall call;
  call.path = JobPath(id);
  ASSAY_ASSIGN_OR_RETURN(const std::string reply, Ask(call, stop));
  return ParseJob(reply);
}

Result<JobStatus> SubmittedJob::Cancel(const std::string& id, StopToken stop) {
  ASSAY_RETURN_IF_ERROR(CheckId(id));
  ServerCall call;
  call.method = "DELETE";
  call.path = JobPath(id);
  ASSAY_ASSIGN_OR_RETURN(const std::string reply, Ask(call, stop));
  return ParseJob(reply);
}

Result<std::string> SubmittedJob::Verdict(const std::string& id, StopToken stop) {
  ASSAY_RETURN_IF_ERROR(CheckId(id));
  ServerCall call;
  call.path = "/api/verdicts/" + id;
  ASSAY_ASSIGN_OR_RETURN(const std::string reply, Ask(call, stop));
  const Json json = Json::parse(reply, nullptr, false);
  if (json.is_object() && json.contains("verdict") && json["verdict"].is_object())
    return Dump(json["verdict"]);
  return reply;
}

void SubmittedJob::Take(int64_t number, const std::string& event) {
  if (number <= last_) return;
  last_ = number;
  events_.event(event);
}

Result<bool> SubmittedJob::Stream(const std::string& id, StopToken stop) {
  EventStream stream;
  bool has_come = false;
  ServerCall call;
  call.path = JobPath(id, fmt::format("/events?after={}", last_));
  call.headers = {"accept: text/event-stream", fmt::format("last-event-id: {}", last_)};
  call.total_s = terms_.stream_s;
  call.take = [&](std::string_view bytes) {
    return stream.Take(bytes, [&](const StreamedEvent& event) {
      const int64_t number = NumberOf(event.id);
      if (number <= 0) return true;
      has_come = true;
      const Json json = Json::parse(event.data, nullptr, false);
      const bool is_wrapped =
          json.is_object() && json.contains("event") && json["event"].is_object();
      const Json inner = is_wrapped ? json["event"] : json;
      Take(number, Dump(inner));
      return !(inner.is_object() && TextOf(inner, "event") == "ended");
    });
  };
  const ServerReply reply = server_.Call(call, stop);
  switch (reply.kind) {
    case Kind::kDone:
      return has_come || reply.content_type.starts_with("text/event-stream");
    case Kind::kLater:
      return has_come || reply.status == 0;  // it broke off, or the server is away
    case Kind::kRefused:
      return false;
    case Kind::kNoToken:
    case Kind::kStopped:
      break;
  }
  return std::unexpected(reply.error);
}

Result<void> SubmittedJob::Poll(const std::string& id, StopToken stop) {
  ServerCall call;
  call.path = JobPath(id, fmt::format("/events?after={}", last_));
  call.headers = {"accept: application/json"};
  ASSAY_ASSIGN_OR_RETURN(const std::string reply, Ask(call, stop));
  const Json json = Json::parse(reply, nullptr, false);
  if (!json.is_object() || !json.contains("events") || !json["events"].is_array()) return {};
  for (const Json& event : json["events"])
    if (event.is_object() && event.contains("event"))
      Take(NumberOf(TextOf(event, "number")), Dump(event["event"]));
  return {};
}

Result<JobStatus> SubmittedJob::Follow(const std::string& id, StopToken stop) {
  std::string shown;
  bool has_stream = true;
  int broken = 0;  // streams in a row that brought nothing
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(JobStatus job, Look(id, stop));
    if (const std::string now = fmt::format("{} {} {}", job.state, job.place, job.for_nobody);
        now != shown) {
      shown = now;
      events_.job(job);
    }
    if (job.has_ended()) return job;
    if (job.state == "queued") {
      if (!repeats_.wait(terms_.queue_poll_s, stop))
        return Fail(ErrorKind::kInterrupted, "interrupted");
      continue;
    }
    const int64_t before = last_;
    if (has_stream) {
      ASSAY_ASSIGN_OR_RETURN(has_stream, Stream(id, stop));
    }
    if (!has_stream) ASSAY_RETURN_IF_ERROR(Poll(id, stop));
    broken = last_ > before ? 0 : broken + 1;
    const double pause_s =
        has_stream ? BackOffSeconds(terms_.back_off, broken, repeats_.random()) : terms_.poll_s;
    if (has_stream && broken == 0) continue;
    if (!repeats_.wait(pause_s, stop)) return Fail(ErrorKind::kInterrupted, "interrupted");
  }
}

}  // namespace assay
