#include "web/reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "model/outcome.h"
#include "model/verdict_json.h"

namespace assay {
namespace {

constexpr double kPMax = 1000;
constexpr std::string_view kAll = "all";

std::optional<double> NumberOf(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number))
    return std::nullopt;
  return number;
}

const BaselineResult* Deciding(const Verdict& verdict) {
  if (!verdict.speed) return nullptr;
  const auto found = verdict.speed->baselines.find(verdict.speed->headline);
  return found == verdict.speed->baselines.end() ? nullptr : &found->second;
}

// Of a candidate whose source is hidden. A first error of a compiler quotes the source; flags are a
// line of it.
void HideWords(Verdict* verdict) {
  verdict->log.clear();
  verdict->candidate.flags.clear();
  verdict->kernels.clear();
  verdict->bottleneck.clear();
  verdict->libraries.reset();
  verdict->profile.reset();
  verdict->sanitizer.reset();
  verdict->probe.reset();
  if (verdict->correctness) verdict->correctness->hint.clear();
  if (FactsOf(verdict->outcome).reached != Reached::kCorrect &&
      verdict->outcome != Outcome::kUnsettled)
    verdict->message = FactsOf(verdict->outcome).meaning;
}

}  // namespace

Result<bool> HidesWordsOf(Hall& hall, const Job& job, const WebRequest& request) {
  BoardEntry entry;
  entry.author = job.author.name;
  entry.job = job.id;
  entry.source_hash = job.source_hash;
  ASSAY_ASSIGN_OR_RETURN(
      const int64_t until_s,
      hall.source_hidden_until_s(request.account.value_or(Account()), entry, request.now));
  return until_s != 0;
}

std::string WithoutWords(const std::string& event) {
  const auto json = nlohmann::json::parse(event, nullptr, false);
  auto shown = nlohmann::json::object();
  if (json.is_object())
    for (const char* name : {"event", "stage", "state", "outcome", "verdict", "runner", "fraction"})
      if (const auto found = json.find(name); found != json.end()) shown[name] = *found;
  return shown.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<std::string> TiersOf(const Catalogue& catalogue) {
  std::set<int> levels;
  for (const OfferedProblem& problem : catalogue.all()) levels.insert(problem.facts.level);
  std::vector<std::string> tiers;
  for (const int level : levels)
    if (level > 0) tiers.push_back(std::to_string(level));
  return tiers;
}

Result<BoardQuery> BoardQueryOf(Hall& hall, const WebRequest& request) {
  BoardQuery query;
  if (const std::string p = request.Query("p"); !p.empty()) {
    const auto number = NumberOf(p);
    if (!number || *number < 0 || *number > kPMax)
      return UsageError(fmt::format("p must be a number from 0 to {:g}", kPMax));
    query.p = *number;
  }
  query.problem = request.Query("problem");
  query.size = request.Query("size");
  query.precision = request.Query("precision");
  query.device = request.Query("processor");
  if ((query.across_devices = query.device == kAll)) query.device.clear();
  if ((query.across_precisions = query.precision == kAll)) query.precision.clear();
  if (const std::string tier = request.Query("tier"); !tier.empty()) {
    for (const OfferedProblem& problem : hall.catalogue().all())
      if (std::to_string(problem.facts.level) == tier) query.problems.insert(problem.facts.name);
    if (query.problems.empty()) return UsageError("there is no such tier");
  }
  const std::string by = request.Query("by");
  if (by == "human")
    query.by = Players::kHumans;
  else if (by == "machine")
    query.by = Players::kMachines;
  else if (!by.empty() && by != "both")
    return UsageError("by must be human, machine or both");
  return query;
}

Result<std::optional<ReadVerdict>> FindVerdict(Hall& hall, const std::string& id,
                                               const WebRequest& request) {
  RecordQuery query;
  query.kind = RecordKind::kVerdict;
  query.id = id;
  query.limit = 1;
  if (id.empty()) return std::nullopt;
  ASSAY_ASSIGN_OR_RETURN(std::vector<Record> records, hall.archive().Find(query));
  if (records.empty()) return std::nullopt;
  ReadVerdict read;
  read.record = std::move(records.front());
  ASSAY_ASSIGN_OR_RETURN(const std::string text, hall.archive().Get(read.record.content));
  ASSAY_ASSIGN_OR_RETURN(read.verdict, VerdictFromJson(text));
  if (!read.record.terms.empty()) {
    ASSAY_ASSIGN_OR_RETURN(const std::string terms, hall.archive().Get(read.record.terms));
    read.served = ReadServedTerms(terms);
  }
  const BoardEntry entry = BoardRowOf(read.record, read.verdict, read.served).entry;
  ASSAY_ASSIGN_OR_RETURN(
      read.hidden_until_s,
      hall.source_hidden_until_s(request.account.value_or(Account()), entry, request.now));
  if (read.hidden_until_s != 0) {
    HideWords(&read.verdict);
    return read;
  }
  if (!read.record.source.empty()) {
    ASSAY_ASSIGN_OR_RETURN(read.source, hall.archive().Get(read.record.source));
  }
  return read;
}

Result<std::optional<PairedVerdict>> FindPaired(Hall& hall, const ReadVerdict& a,
                                                const ReadVerdict& b) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      hall.database().Prepare("SELECT verdict FROM jobs WHERE kind = 'compare' AND state = 'done'"
                              " AND source = ? AND opponent = ? AND problem = ? AND own_runner = 0"
                              " ORDER BY id DESC LIMIT 1"));
  const std::string& candidate = b.verdict.candidate.hash;
  const std::string& opponent = a.verdict.candidate.hash;
  select.Bind(candidate).Bind(opponent).Bind(b.verdict.problem.name);
  ASSAY_ASSIGN_OR_RETURN(const bool found, select.Step());
  if (!found) return std::nullopt;
  RecordQuery query;
  query.kind = RecordKind::kVerdict;
  query.id = select.Text(0);
  query.limit = 1;
  ASSAY_ASSIGN_OR_RETURN(const std::vector<Record> records, hall.archive().Find(query));
  if (records.empty()) return std::nullopt;
  ASSAY_ASSIGN_OR_RETURN(const std::string text, hall.archive().Get(records[0].content));
  ASSAY_ASSIGN_OR_RETURN(const Verdict verdict, VerdictFromJson(text));
  const BaselineResult* result = Deciding(verdict);
  if (result == nullptr) return std::nullopt;
  return PairedVerdict{verdict.id, *result};
}

std::string UnpairedDifference(const Verdict& a, const Verdict& b) {
  const BaselineResult *of_a = Deciding(a), *of_b = Deciding(b);
  const bool alike = a.problem.hash == b.problem.hash && a.problem.set == b.problem.set &&
                     a.problem.size == b.problem.size && a.machine.cpu == b.machine.cpu &&
                     a.machine.gpu == b.machine.gpu && a.machine.threads == b.machine.threads;
  if (of_a == nullptr || of_b == nullptr || !alike) return "they cannot be compared";
  if (of_b->ci_low > of_a->ci_high) return "b is faster";
  if (of_a->ci_low > of_b->ci_high) return "a is faster";
  return "no difference can be seen";
}

Result<std::vector<Record>> RunsOf(Hall& hall, int64_t limit) {
  std::vector<Record> runs;
  for (const RecordKind kind : {RecordKind::kSearch, RecordKind::kRun}) {
    RecordQuery query;
    query.kind = kind;
    query.limit = limit;
    ASSAY_ASSIGN_OR_RETURN(std::vector<Record> found, hall.archive().Find(query));
    std::ranges::move(found, std::back_inserter(runs));
  }
  std::ranges::sort(
      runs, [](const Record& one, const Record& other) { return one.sequence > other.sequence; });
  return runs;
}

}  // namespace assay
