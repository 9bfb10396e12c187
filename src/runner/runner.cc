#include "runner/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace assay {
namespace {

using Kind = ServerReply::Kind;

constexpr double kCallSeconds = 30;        // of a call that the server answers at once
constexpr double kReportSeconds = 10;      // the worker goes on meanwhile
constexpr double kGoodbyeSeconds = 5;      // after Ctrl-C
constexpr double kEmptyAnswerSeconds = 1;  // between calls that a server answers without a job
constexpr double kStageSeconds = 0.2;
constexpr double kRetryReportSeconds = 5;

// A text of a JSON object; empty: it has none.
std::string TextIn(const std::string& object, const char* name) {
  const auto json = nlohmann::json::parse(object, nullptr, false);
  if (!json.is_object()) return "";
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string StageOf(const std::string& event) { return TextIn(event, "stage"); }

std::string JobPath(const std::string& job, const char* action) {
  return fmt::format("/api/runner/jobs/{}/{}", job, action);
}

}  // namespace

Runner::Runner(RunnerTerms terms, RunnerParts parts)
    : terms_(std::move(terms)), parts_(std::move(parts)) {}

ServerReply Runner::Post(const std::string& path, std::string body, double total_s,
                         StopToken stop) {
  ServerCall call;
  call.method = "POST";
  call.path = path;
  call.body = std::move(body);
  call.total_s = total_s;
  return parts_.server.Call(call, stop);
}

Error Runner::Run(StopToken stop) {
  if (const auto started = parts_.worker.Start(stop); !started) return started.error();
  if (!parts_.results.empty())
    parts_.say(fmt::format("tells {} that an earlier runner left in {}",
                           parts_.results.size() == 1
                               ? std::string("a result")
                               : fmt::format("{} results", parts_.results.size()),
                           parts_.results.folder().string()));
  while (true) {
    if (const auto done = Deliver(stop); !done) return done.error();
    if (stop.stopped()) return {ErrorKind::kInterrupted, "interrupted"};
    if (const auto done = TakeOne(stop); !done) return done.error();
  }
}

Result<void> Runner::BackOffAfter(const ServerReply& reply, StopToken stop) {
  ++calls_failed_;
  if (calls_failed_ == 1) parts_.say(fmt::format("{}; tries again", reply.error.message));
  const double own_s = BackOffSeconds(terms_.back_off, calls_failed_, parts_.repeats.random());
  // The server's word holds, within bounds.
  const double wait_s = std::max(own_s, std::min(reply.wait_s.value_or(0), terms_.back_off.max_s));
  if (!parts_.repeats.wait(wait_s, stop)) return Fail(ErrorKind::kInterrupted, "interrupted");
  return {};
}

Result<void> Runner::Deliver(StopToken stop) {
  while (!parts_.results.empty()) {
    const KeptResult& result = parts_.results.oldest();
    // After Ctrl-C, too, it is told once.
    const bool last_chance = stop.stopped();
    const ServerReply reply =
        Post(JobPath(result.job, "end"), result.body, last_chance ? kGoodbyeSeconds : kCallSeconds,
             last_chance ? StopToken() : stop);
    if (reply.kind == Kind::kNoToken) return std::unexpected(reply.error);
    if (reply.kind == Kind::kDone || reply.kind == Kind::kRefused) {
      calls_failed_ = 0;
      if (reply.kind == Kind::kRefused)
        parts_.say(
            fmt::format("job {}: the result is refused: {}", result.job, reply.error.message));
      else if (!FlagOf(reply.body, "counted", true))
        parts_.say(
            fmt::format("job {}: the result does not count: its lease was over", result.job));
      parts_.results.DropOldest();
      continue;
    }
    if (last_chance) {
      parts_.say(
          fmt::format("the results in {} are told when a runner for this server starts again",
                      parts_.results.folder().string()));
      return Fail(ErrorKind::kInterrupted, "interrupted");
    }
    if (reply.kind == Kind::kLater) (void)BackOffAfter(reply, stop);  // a stop is looked at above
  }
  return {};
}

Result<void> Runner::TakeOne(StopToken stop) {
  const int64_t asked_ns = parts_.repeats.now_ns();
  const ServerReply reply = Post("/api/runner/take", TakeBody(terms_.facts, terms_.poll_s),
                                 terms_.poll_s + kCallSeconds, stop);
  switch (reply.kind) {
    case Kind::kDone:
      break;
    case Kind::kLater:
      return BackOffAfter(reply, stop);
    case Kind::kStopped:
    case Kind::kNoToken:
    case Kind::kRefused:
      return std::unexpected(reply.error);
  }
  if (calls_failed_ > 0) parts_.say(fmt::format("{} is there again", parts_.server.base()));
  calls_failed_ = 0;
  if (reply.status == 200) return Judge(reply.body, stop);
  const double took_s = static_cast<double>(parts_.repeats.now_ns() - asked_ns) / 1e9;
  if (took_s < kEmptyAnswerSeconds) parts_.repeats.wait(kEmptyAnswerSeconds, stop);
  return {};
}

bool Runner::Report(const TakenJob& job, const std::string& event, StopToken stop) {
  if (!event.empty()) event_ = event;
  const double since_s = static_cast<double>(parts_.repeats.now_ns() - told_ns_) / 1e9;
  const bool is_new_stage = !event_.empty() && StageOf(event_) != stage_;
  const double heartbeat_s = std::min(terms_.heartbeat_s, job.lease_s / 4);
  const double next_s = report_failed_   ? std::min(kRetryReportSeconds, heartbeat_s / 3)
                        : event_.empty() ? heartbeat_s
                        : is_new_stage   ? kStageSeconds
                                         : terms_.progress_s;
  if (since_s < next_s) return true;
  const std::string told = std::exchange(event_, {});
  if (!told.empty()) stage_ = StageOf(told);
  const ServerReply reply =
      Post(JobPath(job.id, "progress"), ProgressBody(job.lease, told), kReportSeconds, stop);
  told_ns_ = parts_.repeats.now_ns();
  report_failed_ = reply.kind == Kind::kLater;
  if (reply.kind == Kind::kDone) return FlagOf(reply.body, "go_on", true);
  return reply.kind == Kind::kLater || reply.kind == Kind::kStopped;
}

void Runner::GiveBack(const TakenJob& job, const Error& error) {
  (void)Post(JobPath(job.id, "end"), ErrorBody(job.lease, error), kGoodbyeSeconds, StopToken());
}

Result<void> Runner::Judge(const std::string& body, StopToken stop) {
  TakenJob job;
  if (const auto read = ParseTakenJob(body, &job); !read) {
    parts_.say(read.error().message);
    return BackOffAfter({Kind::kLater, 200, "", "", {}, read.error()}, stop);
  }
  parts_.say(fmt::format("job {}: {} on {}", job.id, job.candidate.name, job.problem));
  event_.clear();
  stage_.clear();
  told_ns_ = parts_.repeats.now_ns();
  report_failed_ = false;
  bool given_up = false;
  const auto line = WorkerLine(job, terms_.facts.device, terms_.suites, parts_.files);
  Result<std::string> judged = line ? parts_.worker.Judge(
                                          *line, job.seconds_max,
                                          [&](const std::string& event) {
                                            given_up = given_up || !Report(job, event, stop);
                                            return !given_up;
                                          },
                                          stop)
                                    : std::unexpected(line.error());
  return End(job, judged, given_up, stop);
}

Result<void> Runner::End(const TakenJob& job, const Result<std::string>& judged, bool given_up,
                         StopToken stop) {
  if (!judged && (given_up || judged.error().kind == ErrorKind::kInterrupted)) {
    parts_.say(given_up ? fmt::format("job {}: the server wants it no more", job.id)
                        : fmt::format("job {}: given back", job.id));
    GiveBack(job, judged.error());
    if (stop.stopped()) return Fail(ErrorKind::kInterrupted, "interrupted");
    return {};
  }
  const bool failed_here = !judged && judged.error().kind == ErrorKind::kEnvironment;
  if (failed_here && job.id != job_failed_) ++jobs_failed_;
  if (!failed_here) jobs_failed_ = 0;
  if (judged) pauses_ = 0;
  job_failed_ = failed_here ? job.id : "";
  parts_.say(judged ? fmt::format("job {}: {}", job.id, TextIn(*judged, "outcome"))
                    : fmt::format("job {}: no verdict: {}", job.id, judged.error().message));
  const auto kept = parts_.results.Keep(
      job.id, job.lease,
      judged ? VerdictBody(job.lease, *judged) : ErrorBody(job.lease, judged.error()));
  if (!kept)
    parts_.say(
        fmt::format("the result of job {} is in memory alone: {}", job.id, kept.error().message));
  if (jobs_failed_ < terms_.failures_max) return {};
  ASSAY_RETURN_IF_ERROR(Deliver(stop));
  return Pause(judged.error(), stop);
}

Result<void> Runner::Pause(const Error& last, StopToken stop) {
  Error why = last;
  while (true) {
    const double wait_s = std::min(terms_.pause_s_max, std::ldexp(terms_.pause_s, pauses_++));
    parts_.say(
        fmt::format("{} jobs in a row had no verdict here, the last since {}: assay doctor "
                    "says whether judging works; goes on in {:.0f} s",
                    jobs_failed_, why.message, wait_s));
    parts_.worker.Stop();
    if (!parts_.repeats.wait(wait_s, stop)) return Fail(ErrorKind::kInterrupted, "interrupted");
    const auto started = parts_.worker.Start(stop);
    if (started) break;
    if (started.error().kind == ErrorKind::kInterrupted) return started;
    why = started.error();
  }
  jobs_failed_ = 0;
  return {};
}

}  // namespace assay
