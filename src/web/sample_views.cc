#include "web/sample_views.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/files.h"
#include "model/json_node.h"
#include "model/outcome.h"
#include "web/parts.h"

namespace assay {
namespace {

constexpr size_t kFileBytesMax = size_t{16} << 20;

BoardEntry EntryOf(const ExampleCandidate& candidate, const std::string& runner) {
  const Verdict& verdict = candidate.verdict;
  BoardEntry entry;
  entry.verdict = verdict.id;
  entry.problem = verdict.problem.name;
  entry.size = verdict.problem.size;
  entry.gpu_or_cpu = verdict.machine.gpu.empty() ? verdict.machine.cpu : verdict.machine.gpu;
  entry.precision = verdict.correctness ? verdict.correctness->required_class : "";
  entry.form = CandidateFormName(verdict.candidate.form);
  entry.author = candidate.player;
  entry.role = candidate.role;
  entry.outcome = std::string(OutcomeName(verdict.outcome));
  if (const BaselineResult* result = HeadlineOf(verdict)) {
    entry.speedup = result->speedup;
    entry.ci_low = result->ci_low;
    entry.ci_high = result->ci_high;
    entry.time_ns = result->candidate_time_ns;
  }
  if (verdict.roofline) entry.percent_of_peak = verdict.roofline->percent_of_peak;
  entry.time = verdict.created;
  entry.runner = runner;
  entry.foul = verdict.foul.has_value();
  return entry;
}

double CertifiedOf(const Verdict& verdict) {
  const BaselineResult* result = HeadlineOf(verdict);
  return result == nullptr || !IsCorrect(verdict.outcome) ? 0 : result->certified_speedup;
}

bool Fits(const ExampleCandidate& candidate, const BoardFilter& filter) {
  if (filter.by == BoardSide::kHuman && candidate.role == Role::kMachine) return false;
  if (filter.by == BoardSide::kMachine && candidate.role != Role::kMachine) return false;
  return filter.problem.empty() || candidate.verdict.problem.name == filter.problem;
}

// The largest certified speedup of each problem that was solved; 0: correct alone.
using Solved = std::map<std::string, double>;

void Take(const Verdict& verdict, Solved* solved) {
  if (!IsCorrect(verdict.outcome)) return;
  double& best = (*solved)[verdict.problem.name];
  best = std::max(best, CertifiedOf(verdict));
}

Curve CurveOf(const Solved& solved) {
  std::vector<double> speeds;
  for (const auto& [problem, speed] : solved) speeds.push_back(speed);
  std::sort(speeds.begin(), speeds.end());
  Curve curve{{0, static_cast<int64_t>(speeds.size())}};
  for (size_t i = 0; i < speeds.size(); ++i)
    curve.push_back({speeds[i], static_cast<int64_t>(speeds.size() - i - 1)});
  return curve;
}

// As far as samples need: by the number of problems; equal numbers share a rank.
void RankPlayers(std::vector<BoardPlayer>* players) {
  std::stable_sort(players->begin(), players->end(), [](const auto& a, const auto& b) {
    return std::pair(a.fast.count, a.mean_speedup) > std::pair(b.fast.count, b.mean_speedup);
  });
  for (size_t i = 0; i < players->size(); ++i) {
    BoardPlayer& player = (*players)[i];
    player.rank = static_cast<int64_t>(i) + 1;
    if (i > 0 && (*players)[i - 1].fast.count == player.fast.count) {
      player.rank = (*players)[i - 1].rank;
      player.tied = (*players)[i - 1].tied = true;
    }
  }
}

void RankEntries(std::vector<RankedEntry>* entries) {
  std::stable_sort(entries->begin(), entries->end(),
                   [](const auto& a, const auto& b) { return a.entry.speedup > b.entry.speedup; });
  size_t first = 0;  // of those that share a rank
  for (size_t i = 0; i < entries->size(); ++i) {
    RankedEntry& each = (*entries)[i];
    const auto outcome = OutcomeFromName(each.entry.outcome);
    if (!outcome || !IsCorrect(*outcome) || each.entry.speedup <= 0) continue;
    if (i > 0 && each.entry.ci_high < (*entries)[first].entry.ci_low) first = i;
    each.rank = static_cast<int64_t>(first) + 1;
    if (first != i) each.tied = (*entries)[first].tied = true;
  }
}

}  // namespace

Result<SampleData> ReadSampleData(const std::string& root) {
  SampleData data{root, {}, {}};
  ASSAY_ASSIGN_OR_RETURN(data.suite, LoadSuite(root + "/problems"));
  ASSAY_ASSIGN_OR_RETURN(data.examples,
                         ReadExamples({std::string(ASSAY_BUILD_DIRECTORY) + "/lib/assay/examples",
                                       root + "/kernels"}));
  return data;
}

BoardView SampleBoard(const SampleData& data, const BoardFilter& filter) {
  BoardView view;
  view.filter = filter;
  view.asked = filter.problem.empty() ? static_cast<int64_t>(data.suite.problems.size()) : 1;
  std::map<std::string, Solved> by_player;
  std::map<std::string, int64_t> judged;
  Solved human, machine;
  std::set<std::string> problems, sizes, processors;
  for (const ExampleCandidate& candidate : data.examples.candidates) {
    const Verdict& verdict = candidate.verdict;
    problems.insert(verdict.problem.name);
    sizes.insert(verdict.problem.size);
    processors.insert(verdict.machine.cpu);
    if (!Fits(candidate, filter)) continue;
    Take(verdict, &by_player[candidate.player]);
    Take(verdict, candidate.role == Role::kMachine ? &machine : &human);
    ++judged[candidate.player];
    if (!filter.problem.empty())
      view.entries.push_back({0, false, EntryOf(candidate, data.examples.runner)});
  }
  view.problems.assign(problems.begin(), problems.end());
  view.sizes.assign(sizes.begin(), sizes.end());
  view.processors.assign(processors.begin(), processors.end());
  view.tiers = {"1", "2", "3"};
  view.precisions = {"float32"};
  if (filter.by != BoardSide::kMachine)
    view.curves.push_back({"human", ChartSide::kFirst, CurveOf(human), view.asked});
  if (filter.by != BoardSide::kHuman)
    view.curves.push_back({"machine", ChartSide::kSecond, CurveOf(machine), view.asked});
  for (const auto& [name, role] : data.examples.Players()) {
    if (!by_player.contains(name)) continue;
    const Curve curve = CurveOf(by_player[name]);
    BoardPlayer player{0,
                       false,
                       name,
                       role,
                       ShareOf(CountAt(curve, filter.p), view.asked),
                       CountAt(curve, 0),
                       0,
                       judged[name]};
    double sum = 0;
    for (const auto& [problem, speed] : by_player[name]) sum += std::log(std::max(speed, 1e-3));
    if (player.correct > 0)
      player.mean_speedup = std::exp(sum / static_cast<double>(player.correct));
    view.players.push_back(std::move(player));
  }
  RankPlayers(&view.players);
  RankEntries(&view.entries);
  view.rank_rule = "Players with as many problems share a rank.";
  return view;
}

VerdictView SampleVerdict(const SampleData& data, const std::string& id) {
  VerdictView view;
  for (const ExampleCandidate& candidate : data.examples.candidates)
    if (candidate.verdict.id == id) {
      view.verdict = candidate.verdict;
      view.author = candidate.player;
      view.role = candidate.role;
      view.source = candidate.source;
    }
  view.runner = data.examples.runner;
  view.server = "https://assay.example.org";
  return view;
}

std::vector<ProblemLine> SampleProblems(const SampleData& data) {
  std::vector<ProblemLine> lines;
  for (const SuiteProblem& problem : data.suite.problems) {
    ProblemLine line{problem, 0, {}};
    for (const ExampleCandidate& candidate : data.examples.candidates) {
      if (candidate.verdict.problem.name != problem.name) continue;
      ++line.judged;
      const BoardEntry entry = EntryOf(candidate, data.examples.runner);
      if (candidate.verdict.outcome == Outcome::kFaster && entry.speedup > line.best.speedup)
        line.best = entry;
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

Result<ProblemView> SampleProblem(const SampleData& data, const std::string& name) {
  ProblemView view;
  for (const SuiteProblem& problem : data.suite.problems)
    if (problem.name == name) view.problem = problem;
  ASSAY_ASSIGN_OR_RETURN(view.reference,
                         ReadFile(data.suite.folder + "/" + view.problem.file, kFileBytesMax));
  for (const ExampleCandidate& candidate : data.examples.candidates) {
    if (candidate.verdict.problem.name != name) continue;
    const BoardEntry entry = EntryOf(candidate, data.examples.runner);
    view.entries.push_back({0, false, entry});
    BoardEntry& best = view.best[entry.size];
    if (IsCorrect(candidate.verdict.outcome) && entry.speedup > best.speedup) best = entry;
    if (IsCorrect(candidate.verdict.outcome)) view.shown.push_back(candidate.verdict);
  }
  RankEntries(&view.entries);
  return view;
}

Result<RunView> SampleRun(const SampleData& data) {
  ASSAY_ASSIGN_OR_RETURN(
      const std::string text,
      ReadFile(data.root + "/bench/results/cpu-2core/search_softmax.jsonl", kFileBytesMax));
  RunView view;
  std::string error;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    ASSAY_ASSIGN_OR_RETURN(const JsonDocument document,
                           JsonDocument::Parse(text.substr(at, end - at)));
    at = end + 1;
    const JsonNode root = document.Root(&error);
    if (root.At("kind").Text() == "search") {
      const JsonNode search = root.At("search");
      view.began = root.At("time").Text();
      view.settings.id = search.At("search").Text();
      view.settings.seed = search.At("seed").WholeText();
      view.settings.problem = search.At("problem").Text();
      view.settings.strategy = search.At("strategy").Text();
      view.settings.proposer = search.At("proposer").Text();
      view.settings.from_name = search.At("from").Text();
      view.settings.budget.evaluations = search.At("budget").At("evaluations").Whole<int64_t>();
      continue;
    }
    const JsonNode result = root.At("result");
    RunNode node;
    node.key = result.At("key").Text();
    if (node.key.starts_with("confirm/")) node.kind = StepKind::kConfirm;
    result.At("parents").ForEach(
        [&](const JsonNode& parent) { node.lineage.parents.push_back(parent.Text()); });
    node.lineage.operation = result.At("operation").Text();
    node.lineage.note = result.At("note").Text();
    node.outcome = result.Find("outcome").TextOrNull();
    node.duplicate_of = result.Find("duplicate_of").TextOrNull();
    node.verdict = result.Find("verdict_id").TextOrNull();
    if (const JsonNode ratio = result.Find("ratio"); !ratio.IsNull())
      node.ratio = {ratio.At("value").Number(), ratio.At("low").Number(),
                    ratio.At("high").Number()};
    node.seconds = result.At("seconds").Number();
    view.spent.seconds = std::max(view.spent.seconds, node.seconds);
    ++view.spent.evaluations;
    view.nodes.push_back(std::move(node));
  }
  if (!error.empty()) return UsageError(error);
  return view;
}

Result<std::vector<LadderView>> SampleLadder(const SampleData& data, const std::string& file,
                                             const std::string& machine) {
  ASSAY_ASSIGN_OR_RETURN(const Ladder ladder, ReadLadder(data.root + "/kernels/" + file));
  ASSAY_ASSIGN_OR_RETURN(
      const std::vector<LadderRow> rows,
      ReadRows(data.root + "/bench/results/" + machine + "/ladders.jsonl", ladder.name));
  std::vector<LadderView> views;
  for (const LadderSize& size : ladder.sizes)
    views.push_back({ladder, size, NewestResults(ladder, size, ladder.rungs, rows)});
  return views;
}

}  // namespace assay
