#include "ladder/climb.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/hash.h"
#include "machine/machine.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

std::map<std::string, std::string> SetOf(const LadderSize& size) {
  return {size.begin(), size.end()};
}

AskedTerms AskedOf(const Ladder& ladder, const LadderSize& size, AskedTerms asked) {
  const fs::path file = fs::path(ladder.folder) / ladder.problem;
  std::error_code unknown;
  asked.problem = {fs::is_regular_file(file, unknown) ? file.string() : ladder.problem, "",
                   SetOf(size)};
  asked.device = ladder.device;
  asked.precision = ladder.precision;
  // The judge measures all baselines for the best one, those of the other columns among them.
  asked.baselines = ladder.baseline == kBestBaseline
                        ? ladder.baseline
                        : fmt::format("{}", fmt::join(ladder.Baselines(), ","));
  return asked;
}

}  // namespace

Result<ClimbPlan> PlanClimb(const Ladder& ladder, const LadderSize& size,
                            const std::vector<Rung>& rungs, const PlanTerms& terms,
                            const std::vector<LadderRow>& rows) {
  std::vector<CandidateSource> sources;
  for (const Rung& rung : rungs) {
    ASSAY_ASSIGN_OR_RETURN(CandidateSource source,
                           ReadCandidate((fs::path(ladder.folder) / rung.file).string()));
    sources.push_back(std::move(source));
  }
  ClimbPlan plan;
  ASSAY_ASSIGN_OR_RETURN(plan.request.terms,
                         ResolveTerms(AskedOf(ladder, size, terms.asked), sources));
  SessionTerms& session = plan.request.terms;
  session.machine = terms.profile;
  RowKey key{terms.judge,
             ladder.name,
             "",
             Sha256Hex(session.problem.source),
             SetOf(size),
             ladder.device,
             terms.machine,
             session.threads > 0 ? session.threads : DefaultThreads(ladder.device == "cuda"),
             ladder.Baselines()};
  for (size_t i = 0; i < rungs.size(); ++i) {
    key.candidate_hash = sources[i].hash;
    const LadderRow* row = terms.again ? nullptr : FindRow(rows, key);
    plan.rungs.push_back({rungs[i], {}, row != nullptr});
    if (row != nullptr)
      plan.rungs.back().row = *row;
    else
      plan.request.candidates.push_back(std::move(sources[i]));
  }
  return plan;
}

ClimbEnd Climb(const std::string& ladder, const std::string& judge, ClimbPlan* plan, int64_t end_ns,
               const std::atomic<bool>& interrupted, const ClimbTools& tools) {
  std::atomic<bool> enough{false};
  ClimbEnd end;
  size_t told = 0;
  const auto tell = [&] {
    for (; told < plan->rungs.size() && plan->rungs[told].row; ++told)
      tools.finished(plan->rungs[told]);
  };
  tell();
  std::vector<RungResult*> waiting;
  for (RungResult& result : plan->rungs)
    if (!result.row) waiting.push_back(&result);
  auto next = waiting.begin();
  JudgeEvents events;
  events.progress = tools.progress;
  events.unjudged = [&](const Error&) { ++next; };
  events.verdict = [&](const Verdict& verdict) {
    tools.saw(verdict);
    LadderRow row{judge, tools.date(), ladder, verdict};
    row.verdict.samples.clear();
    if (auto kept = tools.keep(row); !kept && !end.error) {
      end.error = kept.error();
      enough = true;
    }
    (*next++)->row = std::move(row);
    tell();
    if (tools.now_ns() >= end_ns) enough = true;
  };
  if (!plan->request.candidates.empty() && tools.now_ns() < end_ns) {
    const auto judged = tools.judge(plan->request, events, StopToken(interrupted, enough));
    const bool time_up = enough && !interrupted;
    if (!judged && !end.error && !time_up) end.error = judged.error();
  }
  for (; told < plan->rungs.size(); ++told)
    if (plan->rungs[told].row) tools.finished(plan->rungs[told]);
  end.left =
      static_cast<size_t>(std::count_if(plan->rungs.begin(), plan->rungs.end(),
                                        [](const RungResult& result) { return !result.row; }));
  return end;
}

std::vector<RungResult> NewestResults(const Ladder& ladder, const LadderSize& size,
                                      const std::vector<Rung>& rungs,
                                      const std::vector<LadderRow>& rows) {
  std::vector<RungResult> results;
  for (const Rung& rung : rungs) {
    const LadderRow* newest = nullptr;
    for (const LadderRow& row : rows) {
      const std::string file = fs::path(row.verdict.candidate.path).filename().string();
      const fs::path problem(row.verdict.problem.path);
      const bool same = row.ladder == ladder.name &&
                        problem.stem() == fs::path(ladder.problem).stem() &&
                        row.verdict.machine.gpu.empty() == (ladder.device == "cpu") &&
                        row.verdict.problem.set == SetOf(size) &&
                        file.substr(file.find('_') + 1) == rung.UnnumberedFile();
      if (same && (newest == nullptr || row.date >= newest->date)) newest = &row;
    }
    results.push_back({rung, {}, true});
    if (newest != nullptr) results.back().row = *newest;
  }
  return results;
}

}  // namespace assay
