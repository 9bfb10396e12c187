#include "cluster/pilot.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "cluster/work_end.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kIdleWaitMs = 1000;
constexpr double kExpireEveryS = 20;

Error Interrupted(std::string why) { return {ErrorKind::kInterrupted, std::move(why)}; }

std::string OutcomeIn(const std::string& verdict) {
  const Json json = Json::parse(verdict, nullptr, false);
  return json.is_object() ? json.value("outcome", json.value("event", "")) : "";
}

}  // namespace

Pilot::Pilot(PilotTerms terms, PilotParts parts)
    : terms_(std::move(terms)), parts_(std::move(parts)), started_s_(Now()) {}

double Pilot::Now() const { return static_cast<double>(parts_.repeats.now_ns()) / 1e9; }

bool Pilot::TimeIsOver() const {
  return terms_.stop_after_s > 0 && Now() - started_s_ >= terms_.stop_after_s;
}

bool Pilot::Holds(int64_t id) const {
  return std::ranges::any_of(held_, [&](const ClaimedWork& work) { return work.id == id; });
}

Error Pilot::Run(StopToken stop) {
  if (const auto started = parts_.worker.Start(stop); !started) return started.error();
  worked_s_ = Now();
  while (true) {
    Result<void> done;
    if (stop.stopped())
      done = std::unexpected(Interrupted("interrupted"));
    else if (TimeIsOver())
      done = std::unexpected(Interrupted("its time is over"));
    else
      done = held_.empty() ? TakeSome(stop) : JudgeOne(stop);
    if (done) continue;
    HandBack();
    return done.error();
  }
}

void Pilot::HandBack() {
  if (held_.empty()) return;
  const auto given = parts_.queue.GiveBack(terms_.facts, held_);
  parts_.say(given ? fmt::format("handed back {}", held_.size())
                   : fmt::format("cannot hand back {}: {}; they are judged elsewhere once the "
                                 "lease is over",
                                 held_.size(), given.error().message));
  held_.clear();
}

Result<void> Pilot::Bear(const Error& error, StopToken stop) {
  if (error.kind == ErrorKind::kUsage) return std::unexpected(error);
  if (++calls_failed_ == 1) {
    trouble_since_s_ = Now();
    parts_.say(error.message + "; tries again");
  }
  if (Now() - trouble_since_s_ > terms_.queue_trouble_max_s) return std::unexpected(error);
  const double wait_s = BackOffSeconds(terms_.back_off, calls_failed_, parts_.repeats.random());
  if (!parts_.repeats.wait(wait_s, stop)) return std::unexpected(Interrupted("interrupted"));
  return {};
}

void Pilot::Beat() {
  if (beaten_s_ > 0 && Now() - beaten_s_ < terms_.beat_s) return;
  beaten_s_ = Now();
  const auto lost = parts_.queue.Beat(terms_.facts, held_);
  if (!lost) return;  // the next one comes soon
  std::erase_if(held_, [&](const ClaimedWork& work) {
    return std::ranges::find(*lost, work.id) != lost->end();
  });
}

Result<void> Pilot::TakeSome(StopToken stop) {
  Beat();
  const double left_s = terms_.stop_after_s - (Now() - started_s_);
  if (terms_.stop_after_s > 0 && left_s < judgement_s_)
    return std::unexpected(Interrupted("its time is nearly over"));
  const int most = judgement_s_ > 0 ? std::clamp(static_cast<int>(terms_.claim_s / judgement_s_), 1,
                                                 terms_.works_max)
                                    : 1;
  auto claimed = parts_.queue.Claim(terms_.facts, most);
  if (!claimed) return Bear(claimed.error(), stop);
  calls_failed_ = 0;
  held_ = std::move(*claimed);
  if (!held_.empty()) return {};
  if (terms_.idle_stop_s > 0 && Now() - worked_s_ > terms_.idle_stop_s)
    return std::unexpected(
        Interrupted(fmt::format("there was no work for {:.0f} s", terms_.idle_stop_s)));
  // A controller may be away: somebody has to look after workers that fell silent.
  if (Now() - expired_s_ > kExpireEveryS) {
    expired_s_ = Now();
    (void)parts_.queue.Expire();
  }
  if (const auto waited = parts_.queue.Wait(kIdleWaitMs); !waited)
    return Bear(waited.error(), stop);
  return {};
}

Result<void> Pilot::JudgeOne(StopToken stop) {
  const ClaimedWork work = held_.front();
  const auto request = ParseWorkRequest(work.request);
  if (!request) return End(work, std::unexpected(request.error()));
  if (request->version != terms_.facts.version) {
    const std::string why =
        fmt::format("this node has Assay {}, and the run is of {}: install one version on all",
                    terms_.facts.version, request->version);
    (void)parts_.queue.Drain(terms_.facts.name, why);
    return UsageError(why);
  }
  const double begun_s = Now();
  const auto judged = Judge(work, *request, stop);
  worked_s_ = Now();
  if (!Holds(work.id)) {
    parts_.say(fmt::format("{}: the queue wants it no more", work.key));
    return {};
  }
  if (!judged && judged.error().kind == ErrorKind::kInterrupted) return {};  // Run sees why
  judgement_s_ = worked_s_ - begun_s;
  return End(work, judged);
}

Result<std::string> Pilot::Judge(const ClaimedWork& work, const WorkRequest& request,
                                 StopToken stop) {
  parts_.say(fmt::format("{}: {} on {}, attempt {}", work.key, request.job.candidate.name,
                         request.job.problem, work.attempt));
  ASSAY_ASSIGN_OR_RETURN(const std::string line,
                         LineOfRequest(request, terms_.facts.device, terms_.suites, parts_.files));
  if (request.fresh) parts_.worker.Stop();
  const auto look = [&](const std::string&) {
    Beat();
    return Holds(work.id) && !TimeIsOver();
  };
  const double seconds_max = request.seconds_max > 0
                                 ? std::min(request.seconds_max, terms_.seconds_max)
                                 : terms_.seconds_max;
  return parts_.worker.Judge(line, seconds_max, look, stop);
}

Result<void> Pilot::End(const ClaimedWork& work, const Result<std::string>& judged) {
  const bool failed_here = !judged && judged.error().kind == ErrorKind::kEnvironment;
  failures_ = failed_here ? failures_ + 1 : 0;
  parts_.say(judged ? fmt::format("{}: {}", work.key, OutcomeIn(*judged))
                    : fmt::format("{}: no verdict: {}", work.key, judged.error().message));
  const WorkEnd end =
      judged ? WorkEnd{*judged, "", false} : WorkEnd{"", ErrorText(judged.error()), failed_here};
  // Also after SIGTERM: a verdict that stands is not thrown away.
  while (true) {
    const auto ended = parts_.queue.End(terms_.facts, work, end);
    if (ended && !*ended)
      parts_.say(work.key + ": the end does not count: it was given to another");
    if (ended) break;
    ASSAY_RETURN_IF_ERROR(Bear(ended.error(), StopToken()));
    Beat();
  }
  calls_failed_ = 0;
  std::erase_if(held_, [&](const ClaimedWork& each) { return each.id == work.id; });
  if (failures_ < terms_.failures_max) return {};
  const std::string why = fmt::format(
      "{} works in a row had no verdict here, the last since {}: assay doctor says "
      "whether judging works on this node",
      failures_, judged.error().message);
  (void)parts_.queue.Drain(terms_.facts.name, why);
  return EnvironmentError(why);
}

}  // namespace assay
