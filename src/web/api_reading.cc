#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/version.h"
#include "model/shared_terms.h"
#include "model/verdict_json.h"
#include "report/text_diff.h"
#include "search/outcome_table.h"
#include "serve/words.h"
#include "web/api.h"
#include "web/reading.h"
#include "web/replies.h"
#include "web/run_pages.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kRunsShown = 200;
constexpr size_t kFoulsShown = 50, kOwnShown = 50;

Json ProblemJson(const OfferedProblem& problem) {
  const SuiteProblem& facts = problem.facts;
  Json sizes = Json::object();
  for (const auto& [name, values] : facts.sizes) sizes[name] = values;
  return {{"name", facts.name},     {"level", facts.level},    {"mechanism", facts.mechanism},
          {"lesson", facts.lesson}, {"sizes", sizes},          {"hash", problem.hash},
          {"own", problem.is_own},  {"weights", facts.weights}};
}

ServedReply ListProblems(Hall& hall, const WebRequest&) {
  Json list = Json::array();
  for (const OfferedProblem& problem : hall.catalogue().all()) list.push_back(ProblemJson(problem));
  return JsonReply({{"problems", list}});
}

Json RowJson(const BoardRow& row) {
  Json json = EntryJson(row.entry);
  json["certified_speedup"] = row.certified;
  json["own_runner"] = row.own_runner;
  if (!row.foul_rule.empty()) json["foul_rule"] = row.foul_rule;
  return json;
}

Json BoardsJson(const std::vector<ProblemBoard>& boards) {
  Json list = Json::array();
  for (const ProblemBoard& board : boards) {
    Json entries = Json::array();
    for (const PlacedEntry& entry : board.entries) {
      Json row = RowJson(entry.row);
      row["rank"] = entry.rank;
      row["tied"] = entry.group > 1;
      entries.push_back(std::move(row));
    }
    list.push_back({{"problem", board.problem},
                    {"size", board.size},
                    {"precision", board.precision},
                    {"device", board.device},
                    {"entries", std::move(entries)}});
  }
  return list;
}

ServedReply GetProblem(Hall& hall, const WebRequest& request) {
  const auto problem = hall.catalogue().Find(request.captures.at("name"));
  if (!problem) return ErrorReply(404, problem.error().message);
  Json json = ProblemJson(**problem);
  ASSAY_ASSIGN_OR_REPLY(json["reference"], hall.catalogue().Text(**problem));
  BoardQuery query;
  query.problem = (*problem)->facts.name;
  ASSAY_ASSIGN_OR_REPLY(const auto boards, hall.BoardsOf(query));
  return JsonReply({{"problem", json}, {"boards", BoardsJson(*boards)}});
}

Json CurveJson(const Curve& curve) {
  Json steps = Json::array();
  for (const CurveStep& step : curve) steps.push_back({{"p", step.p}, {"count", step.count}});
  return steps;
}

Result<std::string> BoardText(Hall& hall, const BoardQuery& query) {
  ASSAY_ASSIGN_OR_RETURN(const auto standings, hall.Standings(query));
  Json players = Json::array();
  for (const Competitor& player : standings->players)
    players.push_back({{"rank", player.rank},
                       {"name", player.name},
                       {"role", RoleName(player.role)},
                       {"certified", player.certified},
                       {"plain", player.plain},
                       {"correct", player.correct},
                       {"entries", player.entries},
                       {"mean_speedup", player.mean_speedup},
                       {"certified_speedups", player.speeds}});
  Json json{
      {"p", query.p},
      {"asked", standings->asked},
      {"device", standings->device},
      {"precision", standings->precision},
      {"devices", standings->devices},
      {"precisions", standings->precisions},
      {"players", std::move(players)},
      {"curves",
       {{"human", CurveJson(standings->humans)}, {"machine", CurveJson(standings->machines)}}}};
  if (!query.problem.empty()) {
    ASSAY_ASSIGN_OR_RETURN(const auto boards, hall.BoardsOf(query));
    json["boards"] = BoardsJson(*boards);
  }
  ASSAY_ASSIGN_OR_RETURN(const Board* board, hall.CaughtUpBoard());
  json["own_runners"] = Json::array();
  for (const BoardRow& row : OfOwnRunners(board->rows(), query, kOwnShown))
    json["own_runners"].push_back(RowJson(row));
  json["fouls"] = Json::array();
  for (const BoardRow& row : Fouls(board->rows(), query, kFoulsShown))
    json["fouls"].push_back(RowJson(row));
  return JsonReply(json).body;
}

ServedReply GetBoard(Hall& hall, const WebRequest& request) {
  ASSAY_ASSIGN_OR_REPLY(const BoardQuery query, BoardQueryOf(hall, request));
  ASSAY_ASSIGN_OR_REPLY(const auto text,
                        hall.TextOfBoard("json", query, [&] { return BoardText(hall, query); }));
  return {200, *text};
}

Json VerdictJson(const ReadVerdict& read) {
  return {{"verdict", Json::parse(VerdictToJson(read.verdict, -1))},
          {"entry", RowJson(BoardRowOf(read.record, read.verdict, read.served))},
          {"record", read.record.hash},
          {"source", read.source.empty() ? Json() : Json(read.source)},
          {"hidden", read.hidden_until_s != 0}};
}

Json CheckJson(const SpotCheck& check) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  return {{"job", check.job},
          {"verdict", or_null(check.verdict)},
          {"runner", or_null(check.runner)},
          {"result", or_null(check.result)},
          {"text", or_null(check.text)}};
}

ServedReply NoSuchVerdict() { return ErrorReply(404, "there is no such verdict"); }

ServedReply GetVerdict(Hall& hall, const WebRequest& request) {
  ASSAY_ASSIGN_OR_REPLY(const auto read, FindVerdict(hall, request.captures.at("id"), request));
  if (!read) return NoSuchVerdict();
  Json json = VerdictJson(*read);
  ASSAY_ASSIGN_OR_REPLY(const Board* board, hall.CaughtUpBoard());
  json["spot_check"] = nullptr;
  if (read->served.job != 0) {
    ASSAY_ASSIGN_OR_REPLY(const auto check, hall.spot_checks().Of(read->served.job));
    if (check) json["spot_check"] = CheckJson(*check);
  }
  json["on_each_device"] = Json::array();
  for (const BoardRow& row :
       OnEachDevice(board->rows(), BoardRowOf(read->record, read->verdict, read->served)))
    json["on_each_device"].push_back(RowJson(row));
  return JsonReply(json);
}

// A blob, if it is known and was kept.
Json BlobOrNull(Hall& hall, const std::string& hash) {
  if (hash.empty()) return nullptr;
  const auto bytes = hall.archive().Get(hash);
  return bytes ? Json(*bytes) : Json();
}

// Terms that the archive has for the verdict, but for those that are the judge's own or stand apart
// in the bundle. Empty: its record has none, or those of a job, which is judged on the default
// ones; the verdict tells these.
Json TermsOf(Hall& hall, const ReadVerdict& read) {
  Json terms = Json::object();
  const Json text = BlobOrNull(hall, read.record.terms);
  const Json known = Json::parse(text.is_string() ? text.get<std::string>() : "", nullptr, false);
  if (!known.is_object()) return terms;
  for (const auto& [name, value] : known.items())
    if (IsSharedTerm(name)) terms[name] = value;
  return terms;
}

ServedReply GetBundle(Hall& hall, const WebRequest& request) {
  ASSAY_ASSIGN_OR_REPLY(const auto read, FindVerdict(hall, request.captures.at("id"), request));
  if (!read) return NoSuchVerdict();
  if (read->hidden_until_s != 0) return ErrorReply(403, "its source is hidden until the deadline");
  const Verdict& verdict = read->verdict;
  if (read->source.empty()) return ErrorReply(404, "its source was not kept");
  Json problem{{"name", verdict.problem.name},
               {"file", BlobOrNull(hall, verdict.problem.hash)},
               {"hash", verdict.problem.hash},
               {"size", verdict.problem.size},
               {"set", verdict.problem.set}};
  if (problem["file"].is_null()) {
    const auto known = hall.catalogue().Find(verdict.problem.name);
    if (known && (*known)->hash == verdict.problem.hash)
      if (auto text = hall.catalogue().Text(**known)) problem["file"] = std::move(*text);
  }
  if (problem["file"].is_null()) return ErrorReply(404, "its problem's file was not kept");
  const std::string path = verdict.candidate.path;
  Json json{{"schema", kBundleSchemaName},
            {"problem", std::move(problem)},
            {"candidate",
             {{"name", path.substr(path.rfind('/') + 1)},
              {"source", read->source},
              {"hash", verdict.candidate.hash}}},
            {"opponent", nullptr},
            {"terms", TermsOf(hall, *read)},
            {"record", read->record.hash},
            {"verdict", Json::parse(VerdictToJson(verdict, -1))}};
  if (verdict.speed && verdict.speed->against) {
    const CandidateFile& against = *verdict.speed->against;
    json["opponent"] = {{"name", against.path.substr(against.path.rfind('/') + 1)},
                        {"source", BlobOrNull(hall, against.hash)},
                        {"hash", against.hash}};
    if (json["opponent"]["source"].is_null())
      return ErrorReply(404, "its opponent's source was not kept");
  }
  return JsonReply(json);
}

Json PairedJson(const std::optional<PairedVerdict>& paired) {
  if (!paired) return nullptr;
  const BaselineResult& result = paired->result;
  return {{"verdict", paired->id},
          {"decision", result.decision},
          {"speedup", result.speedup},
          {"ci_low", result.ci_low},
          {"ci_high", result.ci_high},
          {"confidence", result.confidence},
          {"certified_speedup", result.certified_speedup}};
}

ServedReply GetCompare(Hall& hall, const WebRequest& request) {
  ASSAY_ASSIGN_OR_REPLY(const auto a, FindVerdict(hall, request.Query("a"), request));
  ASSAY_ASSIGN_OR_REPLY(const auto b, FindVerdict(hall, request.Query("b"), request));
  if (!a || !b) return ErrorReply(404, "give the ids of two verdicts: ?a=ID&b=ID");
  ASSAY_ASSIGN_OR_REPLY(const auto paired, FindPaired(hall, *a, *b));
  const bool shown = !a->source.empty() && !b->source.empty();
  return JsonReply(
      {{"a", VerdictJson(*a)},
       {"b", VerdictJson(*b)},
       {"diff", shown ? Json(UnifiedDiff(a->source, b->source, "a", "b")) : Json()},
       {"same_artifact", !a->verdict.candidate.artifact.empty() &&
                             a->verdict.candidate.artifact == b->verdict.candidate.artifact},
       {"unpaired", UnpairedDifference(a->verdict, b->verdict)},
       {"paired", PairedJson(paired)}});
}

ServedReply GetMachine(Hall& hall, const WebRequest& request) {
  ASSAY_ASSIGN_OR_REPLY(const Jobs::QueueFacts queue, hall.jobs().Queue());
  ASSAY_ASSIGN_OR_REPLY(const std::vector<KnownRunner> runners, hall.leases().Runners(request.now));
  Json list = Json::array();
  for (const KnownRunner& runner : runners)
    list.push_back(
        {{"name", runner.name},
         {"owner", runner.owner.name},
         {"device", runner.device},
         {"version", runner.version},
         {"promoted", runner.promoted},
         {"seen", runner.seen},
         {"there", runner.is_there},
         {"job", runner.job == 0 ? Json() : Json(runner.job)},
         {"machine",
          runner.machine.empty() ? Json() : Json::parse(runner.machine, nullptr, false)}});
  ASSAY_ASSIGN_OR_REPLY(const int64_t for_nobody, hall.leases().WaitingForNobody(request.now));
  const MachineProfile& machine = hall.machine();
  return JsonReply(
      {{"version", kAssayVersion},
       {"queue",
        {{"queued", queue.queued}, {"running", queue.running}, {"for_nobody", for_nobody}}},
       {"runners", list},
       {"machine", machine.cpu.empty() ? Json() : Json::parse(MachineProfileToJson(machine))}});
}

ServedReply ListRuns(Hall& hall, const WebRequest&) {
  ASSAY_ASSIGN_OR_REPLY(const std::vector<Record> runs, RunsOf(hall, kRunsShown));
  Json list = Json::array();
  for (const Record& record : runs)
    list.push_back({{"id", record.facts.id.empty() ? record.hash.substr(0, 12) : record.facts.id},
                    {"kind", RecordKindName(record.facts.kind)},
                    {"name", record.facts.name},
                    {"problem", record.facts.problem},
                    {"time", record.time}});
  return JsonReply({{"runs", list}});
}

ServedReply GetRun(Hall& hall, const WebRequest& request) {
  const std::string& id = request.captures.at("id");
  const auto journal = Journal::Open(hall.archive(), id);
  if (!journal) return ErrorReply(404, journal.error().message);
  const RunView view = ViewOfRun(*journal);
  const SearchSettings& settings = view.settings;
  Json steps = Json::array();
  for (const RunNode& node : view.nodes)
    steps.push_back({{"key", node.key},
                     {"outcome", node.outcome},
                     {"verdict", node.verdict},
                     {"duplicate_of", node.duplicate_of},
                     {"seconds", node.seconds},
                     {"speedup", node.ratio.value},
                     {"ci_low", node.ratio.low},
                     {"ci_high", node.ratio.high}});
  return JsonReply({{"id", settings.id},
                    {"problem", settings.problem},
                    {"strategy", settings.strategy},
                    {"proposer", settings.proposer},
                    {"in_hand", view.in_hand},
                    {"steps", std::move(steps)}});
}

}  // namespace

void AddReadingRoutes(std::vector<Route>* routes) {
  routes->push_back({"GET", "/api/problems", Access::kReader, ListProblems});
  routes->push_back({"GET", "/api/problems/{name}", Access::kReader, GetProblem});
  routes->push_back({"GET", "/api/board", Access::kReader, GetBoard});
  routes->push_back({"GET", "/api/verdicts/{id}", Access::kReader, GetVerdict});
  routes->push_back({"GET", "/api/verdicts/{id}/bundle", Access::kReader, GetBundle});
  routes->push_back({"GET", "/api/compare", Access::kReader, GetCompare});
  routes->push_back({"GET", "/api/machine", Access::kReader, GetMachine});
  routes->push_back({"GET", "/api/runs", Access::kReader, ListRuns});
  routes->push_back({"GET", "/api/runs/{id}", Access::kReader, GetRun});
}

}  // namespace assay
