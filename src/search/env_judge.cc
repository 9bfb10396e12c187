#include "search/env_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/verdict_json.h"
#include "worker/protocol.h"

namespace assay {
namespace {

using Json = nlohmann::json;

constexpr int kWaitMs = 200;
constexpr size_t kBatchMax = 16;

Error Interrupted() { return {ErrorKind::kInterrupted, "interrupted"}; }

}  // namespace

FleetEnvJudge::~FleetEnvJudge() {
  for (size_t i = 0; i < workers_.size(); ++i)
    if (workers_[i].runs) fleet_.Kill(i);
}

std::vector<Result<Verdict>> FleetEnvJudge::Judge(std::span<const EnvTask> tasks, StopToken stop) {
  std::deque<Request> waiting;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const std::string terms = TermsText(tasks[i].terms);
    const auto open = std::ranges::find_if(waiting, [&](const Request& request) {
      return request.tasks.size() < kBatchMax && TermsText(request.terms) == terms;
    });
    if (open != waiting.end())
      open->tasks.push_back(i);
    else
      waiting.push_back({tasks[i].terms, {i}});
  }
  Answers answers;
  answers.verdicts.resize(tasks.size());
  Serve(std::move(waiting), tasks, stop, &answers);
  std::vector<Result<Verdict>> verdicts;
  for (auto& verdict : answers.verdicts)
    verdicts.push_back(verdict ? std::move(*verdict) : std::unexpected(Interrupted()));
  return verdicts;
}

Result<std::vector<std::string>> FleetEnvJudge::Describe(const AskedTerms& terms, StopToken stop) {
  Answers answers;
  Serve({Request{terms, {}}}, {}, stop, &answers);
  if (!answers.description) return std::unexpected(Interrupted());
  return std::move(*answers.description);
}

void FleetEnvJudge::Serve(std::deque<Request> waiting, std::span<const EnvTask> tasks,
                          StopToken stop, Answers* answers) {
  const auto busy = [&] {
    return std::ranges::any_of(workers_, [](const Worker& worker) { return !worker.id.empty(); });
  };
  while (!stop.stopped() && (!waiting.empty() || busy())) {
    for (size_t i = 0; i < workers_.size() && !waiting.empty(); ++i) {
      if (!workers_[i].id.empty()) continue;
      Request request = std::move(waiting.front());
      waiting.pop_front();
      if (const auto sent = Send(i, request, tasks); !sent) Fail(request, sent.error(), answers);
    }
    const auto said = fleet_.Wait(kWaitMs);
    if (!said) continue;
    if (said->line) {
      Heard(said->worker, *said->line, &waiting, answers);
      continue;
    }
    workers_[said->worker].runs = false;
    End(said->worker,
        {ErrorKind::kEnvironment,
         fmt::format("the worker of {} {}", fleet_.Name(said->worker), said->end)},
        &waiting, answers);
  }
  if (!stop.stopped()) return;
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].runs) fleet_.Kill(i);
    workers_[i] = {};
  }
}

Result<void> FleetEnvJudge::Send(size_t index, Request request, std::span<const EnvTask> tasks) {
  Worker& worker = workers_[index];
  if (!worker.runs) ASSAY_RETURN_IF_ERROR(fleet_.Start(index, true));
  worker.runs = true;
  worker.id = fmt::format("{}", ++next_id_);
  if (request.tasks.empty()) {
    fleet_.Send(index, Json{{"id", worker.id},
                            {"request", "describe"},
                            {"terms", Json::parse(TermsText(request.terms))}}
                           .dump());
  } else {
    std::vector<const CandidateSource*> sources;
    for (const size_t task : request.tasks) sources.push_back(&tasks[task].source);
    fleet_.Send(index, JudgeLine(worker.id, request.terms, sources));
  }
  worker.request = std::move(request);
  return {};
}

void FleetEnvJudge::Heard(size_t index, const std::string& line, std::deque<Request>* waiting,
                          Answers* answers) {
  const Worker& worker = workers_[index];
  const Json event = Json::parse(line, nullptr, false);
  if (!event.is_object() || worker.id.empty() || event.value("id", "") != worker.id) return;
  const std::string kind = event.value("event", "");
  const size_t place = event.value("candidate", worker.request.tasks.size());
  if (kind == "description") {
    answers->description = event.value("signature", std::vector<std::string>());
  } else if (kind == "verdict" && place < worker.request.tasks.size()) {
    answers->verdicts[worker.request.tasks[place]] = VerdictFromJson(event.at("verdict").dump());
  } else if (kind == "unjudged" && place < worker.request.tasks.size()) {
    answers->verdicts[worker.request.tasks[place]] =
        EnvironmentError(event.value("message", "the machine lacks what it needs"));
  } else if (kind == "done") {
    End(index, {ErrorKind::kEnvironment, "the worker gave no answer"}, waiting, answers);
  } else if (kind == "error") {
    const bool usage = event.value("kind", "") == "usage";
    End(index, {usage ? ErrorKind::kUsage : ErrorKind::kEnvironment, event.value("message", "")},
        waiting, answers);
  }
}

void FleetEnvJudge::End(size_t index, const Error& error, std::deque<Request>* waiting,
                        Answers* answers) {
  Worker& worker = workers_[index];
  if (worker.id.empty()) return;
  worker.id.clear();
  Request request = std::exchange(worker.request, {});
  const bool described = request.tasks.empty() && answers->description.has_value();
  const bool was_judging = !request.tasks.empty();
  std::erase_if(request.tasks, [&](size_t task) { return answers->verdicts[task].has_value(); });
  if (described || (was_judging && request.tasks.empty())) return;
  if (request.tried || error.kind == ErrorKind::kUsage) return Fail(request, error, answers);
  request.tried = true;
  waiting->push_front(std::move(request));
}

void FleetEnvJudge::Fail(const Request& request, const Error& error, Answers* answers) {
  if (request.tasks.empty()) answers->description = std::unexpected(error);
  for (const size_t task : request.tasks) answers->verdicts[task] = std::unexpected(error);
}

}  // namespace assay
