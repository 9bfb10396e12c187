#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/options.h"
#include "cli/problem_card.h"
#include "machine/machine.h"
#include "model/verdict_json.h"
#include "report/problem_report.h"
#include "report/terminal.h"
#include "studies/inspect.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

// The suites to list: the one that was named, else those installed.
Result<std::vector<Suite>> SuitesOf(const ProblemListOptions& options) {
  std::vector<Suite> suites;
  std::vector<std::string> folders = SuiteFolders();
  if (!options.suite.empty()) folders = {options.suite};
  for (const std::string& folder : folders) {
    ASSAY_ASSIGN_OR_RETURN(Suite suite, LoadSuite(folder));
    std::erase_if(suite.problems, [&](const SuiteProblem& problem) {
      return (options.level != 0 && problem.level != options.level) ||
             (!options.mechanism.empty() && problem.mechanism != options.mechanism);
    });
    if (!suite.problems.empty()) suites.push_back(std::move(suite));
  }
  if (suites.empty())
    return UsageError("no problem matches: leave out --level and --mechanism to list all of them");
  return suites;
}

Json ToJson(const SuiteProblem& problem) {
  Json ragged = Json::object();
  for (const auto& [name, range] : problem.ragged) ragged[name] = {range.first, range.second};
  return {{"name", problem.name},     {"file", problem.file},
          {"level", problem.level},   {"mechanism", problem.mechanism},
          {"lesson", problem.lesson}, {"sizes", problem.sizes},
          {"ragged", ragged}};
}

Json ToJson(const OperatorLine& line) {
  const auto number = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json();
  };
  return {{"name", line.name},
          {"calls", line.calls},
          {"operations", number(line.operations)},
          {"bytes", number(line.bytes)},
          {"time_share", number(line.time_share)},
          {"headroom", number(line.headroom)}};
}

Json ToJson(const ProblemCard& card) {
  const WorkAccount& account = card.inspection.account;
  Json operators = Json::array();
  for (const OperatorLine& line : JoinOperators(account, card.inspection.profile))
    operators.push_back(ToJson(line));
  Json document = {{"schema", "assay.problem/1"},
                   {"name", card.request.name},
                   {"path", card.request.path},
                   {"level", card.request.level},
                   {"mechanism", card.mechanism},
                   {"size", card.request.size},
                   {"set", card.request.set},
                   {"inputs", account.inputs},
                   {"parameters", account.parameters},
                   {"outputs", account.outputs},
                   {"bytes", card.work.bytes},
                   {"unfused_bytes", card.work.unfused_bytes},
                   {"peak_bytes", card.work.peak_bytes},
                   {"operations_from", card.work.operations_from},
                   {"operations", card.work.operations},
                   {"bound_ns", nullptr},
                   {"regime", nullptr},
                   {"wall_ns", nullptr},
                   {"operators", operators}};
  document["coverage"] =
      card.coverage ? Json::parse(CoverageToJson(*card.coverage)) : Json(nullptr);
  if (card.work.operations_from == "unknown") document["operations"] = nullptr;
  if (card.bound) {
    document["bound_ns"] = card.bound->bound_ns;
    document["regime"] = card.bound->regime;
  }
  if (card.inspection.profile) document["wall_ns"] = card.inspection.profile->wall_ns;
  return document;
}

}  // namespace

int RunProblemList(const ProblemListOptions& options) {
  const auto suites = SuitesOf(options);
  if (!suites)
    return ReportError(suites.error(), options.json ? JsonForm::kDocument : JsonForm::kNone);
  if (options.names) {
    for (const Suite& suite : *suites)
      for (const SuiteProblem& problem : suite.problems)
        std::fputs((problem.name + "\n").c_str(), stdout);
    return 0;
  }
  if (options.json) {
    Json list = Json::array();
    for (const Suite& suite : *suites)
      for (const SuiteProblem& problem : suite.problems) list.push_back(ToJson(problem));
    std::fputs((list.dump(2) + "\n").c_str(), stdout);
    return 0;
  }
  const CardStyle style = CardStyleFor(DetectTerminal(STDOUT_FILENO));
  std::fputs(RenderProblemList(*suites, style).c_str(), stdout);
  return 0;
}

int RunProblemShow(const ProblemShowOptions& options) {
  InspectRequest request;
  request.stop = StopToken(InstallInterruptHandler());
  auto resolved = options.problem.Resolve();
  const JsonForm form = options.json ? JsonForm::kDocument : JsonForm::kNone;
  if (!resolved) return ReportError(resolved.error(), form);
  HeedWeakSandboxFlag(options.allow_weak_sandbox);
  request.problem = *resolved;
  request.python = options.python;
  request.threads = options.threads > 0 ? options.threads : DefaultThreads();
  request.profile = options.profile;
  const auto shown = WithProblemCard(request, [&](const ProblemCard& card) {
    if (options.json)
      std::fputs((ToJson(card).dump(2) + "\n").c_str(), stdout);
    else
      std::fputs(RenderProblem(card, CardStyleFor(DetectTerminal(STDOUT_FILENO))).c_str(), stdout);
  });
  return shown ? 0 : ReportError(shown.error(), form);
}

}  // namespace assay
