#include "search/env_judge.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "worker/protocol.h"

namespace assay {
namespace {

constexpr int kWaitMs = 200;
constexpr size_t kBatchMax = 16;

Error Interrupted() { return {ErrorKind::kInterrupted, "interrupted"}; }

}  // namespace

std::vector<Result<Verdict>> FleetEnvJudge::Judge(std::span<const EnvTask> tasks, StopToken stop) {
  std::deque<WorkerBatch> waiting;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const std::string terms = TermsText(tasks[i].terms);
    const auto open = std::ranges::find_if(waiting, [&](const WorkerBatch& batch) {
      return batch.items.size() < kBatchMax && TermsText(tasks[batch.items[0]].terms) == terms;
    });
    if (open != waiting.end())
      open->items.push_back(i);
    else
      waiting.push_back({{i}});
  }
  std::vector<Result<Verdict>> verdicts(tasks.size(), std::unexpected(Interrupted()));
  Serve(std::move(waiting),
        {[&](const std::string& id, const WorkerBatch& batch) {
           std::vector<const CandidateSource*> sources;
           for (const size_t item : batch.items) sources.push_back(&tasks[item].source);
           return JudgeLine(id, tasks[batch.items[0]].terms, sources);
         },
         [&](const ClientEvent& answer) { verdicts[answer.item()] = answer.Answer(); },
         [&](size_t item, const Error& error) { verdicts[item] = std::unexpected(error); }},
        stop);
  return verdicts;
}

Result<std::vector<std::string>> FleetEnvJudge::Describe(const AskedTerms& terms, StopToken stop) {
  Result<std::vector<std::string>> signature = std::unexpected(Interrupted());
  Serve({WorkerBatch{{0}}},
        {[&](const std::string& id, const WorkerBatch&) { return DescribeLine(id, terms); },
         [&](const ClientEvent& answer) { signature = answer.signature; },
         [&](size_t, const Error& error) { signature = std::unexpected(error); }},
        stop);
  return signature;
}

void FleetEnvJudge::Serve(std::deque<WorkerBatch> waiting, const Work& work, StopToken stop) {
  while (!stop.stopped() && (!waiting.empty() || client_.busy())) {
    for (size_t i = 0; i < client_.size() && !waiting.empty(); ++i) {
      if (client_.requests(i) > 0) continue;
      const WorkerBatch batch = std::move(waiting.front());
      waiting.pop_front();
      const std::string id = client_.NewId();
      if (const auto started = client_.Start(i, 1))
        client_.Ask(i, id, work.line(id, batch), batch);
      else
        for (const size_t item : batch.items) work.failed(item, started.error());
    }
    const auto event = client_.Wait(kWaitMs);
    if (!event) continue;
    if (event->IsAnswer()) work.answered(*event);
    if (!event->IsFailure() || event->batch.items.empty()) continue;
    if (!event->batch.tried && event->error.kind != ErrorKind::kUsage)
      waiting.push_front({event->batch.items, true});
    else
      for (const size_t item : event->batch.items) work.failed(item, event->error);
  }
  if (stop.stopped()) client_.Abort();
}

}  // namespace assay
