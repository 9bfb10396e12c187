#include "search/journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "archive/judged.h"
#include "base/hash.h"
#include "model/outcome.h"
#include "model/verdict_json.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;
using Kind = JournalEvent::Kind;

constexpr int64_t kPageRecords = 1000;

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json JsonOf(const Spending& spending) {
  return {{"usd", spending.usd},
          {"tokens", spending.tokens},
          {"evaluations", spending.evaluations},
          {"seconds", spending.seconds}};
}

Spending SpendingOf(const Json& json) {
  return {json.value("usd", 0.0), json.value("tokens", int64_t{0}),
          json.value("evaluations", int64_t{0}), json.value("seconds", 0.0)};
}

Json PortsOf(const SearchSettings& settings) {
  Json ports = Json::array();
  for (const PortedKernel& port : settings.ports)
    ports.push_back({{"name", port.name},
                     {"source", Sha256Hex(port.source)},
                     {"verdict", Sha256Hex(port.verdict)}});
  return ports;
}

Json JsonOf(const SearchSettings& settings) {
  Json json = {{"schema", "assay.search/1"},
               {"search", settings.id},
               {"seed", fmt::format("{}", settings.seed)},
               {"problem", settings.problem},
               {"terms", Json::parse(settings.terms)},
               {"screening_terms", Json::parse(settings.screening_terms)},
               {"strategy", settings.strategy},
               {"proposer", settings.proposer},
               {"from", settings.from_name},
               {"budget", JsonOf(settings.budget)},
               {"finalists", settings.finalists},
               {"width", settings.width},
               {"chains", settings.chains},
               {"turns", settings.turns},
               {"askers", settings.askers},
               {"verdicts", settings.verdicts},
               {"races", settings.races},
               {"form", settings.form},
               {"signature", settings.signature},
               {"prompts", settings.prompts},
               {"prompt_tokens", settings.prompt_tokens},
               {"answer_tokens", settings.answer_tokens},
               {"temperature", settings.temperature}};
  // Left out if they are off, as in the records of older versions.
  if (settings.knows) json["knows"] = true;
  if (settings.ablates) json["ablates"] = true;
  if (!settings.ports.empty()) json["ports"] = PortsOf(settings);
  return json;
}

SearchSettings SettingsOf(const Json& json) {
  SearchSettings settings;
  settings.id = json.value("search", "");
  const std::string seed = json.value("seed", "0");
  std::from_chars(seed.data(), seed.data() + seed.size(), settings.seed);
  settings.problem = json.value("problem", "");
  settings.terms = Dump(json.value("terms", Json::object()));
  settings.screening_terms = Dump(json.value("screening_terms", Json::object()));
  settings.strategy = json.value("strategy", "");
  settings.proposer = json.value("proposer", "");
  settings.from_name = json.value("from", "");
  settings.budget = SpendingOf(json.value("budget", Json::object()));
  settings.finalists = json.value("finalists", settings.finalists);
  settings.width = json.value("width", settings.width);
  settings.chains = json.value("chains", settings.chains);
  settings.turns = json.value("turns", settings.turns);
  settings.askers = json.value("askers", settings.askers);
  settings.verdicts = json.value("verdicts", "");
  settings.knows = json.value("knows", settings.knows);
  settings.ablates = json.value("ablates", settings.ablates);
  settings.races = json.value("races", settings.races);
  settings.form = json.value("form", "");
  settings.signature = json.value("signature", settings.signature);
  settings.prompts = json.value("prompts", "");
  settings.prompt_tokens = json.value("prompt_tokens", settings.prompt_tokens);
  settings.answer_tokens = json.value("answer_tokens", settings.answer_tokens);
  settings.temperature = json.value("temperature", settings.temperature);
  return settings;
}

NewRecord RecordFor(RecordKind kind, const SearchSettings& settings, const std::string& name,
                    const Json& content) {
  NewRecord record;
  record.facts = {kind, name, settings.id, settings.problem, ""};
  record.content = Dump(content);
  return record;
}

Json HeadOf(std::string_view schema, const SearchSettings& settings, const Step& step) {
  return {{"schema", schema},
          {"search", settings.id},
          {"key", step.key},
          {"kind", StepKindName(step.kind)},
          {"parents", step.lineage.parents},
          {"operation", step.lineage.operation},
          {"note", step.lineage.note}};
}

Json JsonOf(const Step& step, const SearchSettings& settings, const Spending& reserved,
            const IntentFacts& facts) {
  Json json = HeadOf("assay.search.step/1", settings, step);
  if (step.kind == StepKind::kPropose)
    json["prompt"] = {{"system", step.prompt.system},
                      {"text", step.prompt.text},
                      {"temperature", step.prompt.temperature},
                      {"answer_tokens_max", step.prompt.answer_tokens_max},
                      {"seed", fmt::format("{}", step.prompt.seed)}};
  else
    json["candidate"] = step.name;
  json["reserved"] = JsonOf(reserved);
  json["seconds"] = facts.seconds;
  json["judged_at_once"] = facts.judged_at_once;
  return json;
}

Json JsonOf(const Answer& answer) {
  return {{"text", answer.text},
          {"reasoning", answer.reasoning},
          {"model", answer.model},
          {"finish", answer.finish},
          {"usage",
           {{"tokens_in", answer.usage.tokens_in},
            {"tokens_out", answer.usage.tokens_out},
            {"usd", answer.usage.usd},
            {"wall_s", answer.usage.wall_s}}}};
}

Answer AnswerOf(const Json& json) {
  Answer answer{json.value("text", ""),
                json.value("reasoning", ""),
                json.value("model", ""),
                json.value("finish", ""),
                {}};
  const Json usage = json.value("usage", Json::object());
  answer.usage = {usage.value("tokens_in", int64_t{0}), usage.value("tokens_out", int64_t{0}),
                  usage.value("usd", 0.0), usage.value("wall_s", 0.0)};
  return answer;
}

// Calls `read`, which takes a record's JSON apart: members may be of other kinds than Assay writes.
template <typename Read>
auto TakenApart(const Record& record, Read&& read) -> decltype(read()) {
  try {
    return read();
  } catch (const Json::exception& error) {
    return EnvironmentError(fmt::format("record {} is not as this version of Assay writes it: {}",
                                        record.sequence, error.what()));
  }
}

// The newest record of a search's settings; with an id, that search's.
Result<Record> FindSearch(Store& store, const std::string& id) {
  RecordQuery query;
  query.kind = RecordKind::kSearch;
  query.id = id;
  query.limit = 1;
  ASSAY_ASSIGN_OR_RETURN(const std::vector<Record> found, store.Find(query));
  if (found.empty())
    return UsageError(id.empty() ? "the archive has no search to go on with"
                                 : fmt::format("the archive has no search {}: assay archive list "
                                               "--kind search shows those it has",
                                               id));
  return found.front();
}

Result<std::vector<PortedKernel>> ReadPorts(Store& store, const Record& record, const Json& json) {
  using Names = std::vector<std::array<std::string, 3>>;
  ASSAY_ASSIGN_OR_RETURN(const Names names, TakenApart(record, [&] {
                           Names read;
                           for (const Json& port : json.value("ports", Json::array()))
                             read.push_back({port.value("name", ""), port.value("source", ""),
                                             port.value("verdict", "")});
                           return Result<Names>(std::move(read));
                         }));
  std::vector<PortedKernel> ports;
  for (const auto& [name, source, verdict] : names) {
    PortedKernel port{name, "", ""};
    ASSAY_ASSIGN_OR_RETURN(port.source, store.Get(source));
    ASSAY_ASSIGN_OR_RETURN(port.verdict, store.Get(verdict));
    ports.push_back(std::move(port));
  }
  return ports;
}

}  // namespace

Result<SearchSettings> ReadSearchSettings(Store& store, const std::string& id) {
  ASSAY_ASSIGN_OR_RETURN(const Record record, FindSearch(store, id));
  ASSAY_ASSIGN_OR_RETURN(const std::string content, store.Get(record.content));
  const Json json = Json::parse(content, nullptr, false);
  if (!json.is_object())
    return EnvironmentError(fmt::format("record {} is no search", record.sequence));
  ASSAY_ASSIGN_OR_RETURN(SearchSettings settings, TakenApart(record, [&] {
                           return Result<SearchSettings>(SettingsOf(json));
                         }));
  if (!record.source.empty()) {
    ASSAY_ASSIGN_OR_RETURN(settings.from_source, store.Get(record.source));
  }
  ASSAY_ASSIGN_OR_RETURN(settings.ports, ReadPorts(store, record, json));
  return settings;
}

Result<Journal> Journal::Begin(Store& store, const SearchSettings& settings,
                               std::vector<NewRecord> files) {
  Journal journal(store, settings);
  NewRecord record = RecordFor(RecordKind::kSearch, settings, settings.strategy, JsonOf(settings));
  record.source = settings.from_source;
  record.terms = settings.terms;
  files.push_back(std::move(record));
  ASSAY_RETURN_IF_ERROR(store.Append(files));
  return journal;
}

Result<Journal> Journal::Open(Store& store, const std::string& id) {
  ASSAY_ASSIGN_OR_RETURN(SearchSettings settings, ReadSearchSettings(store, id));
  Journal journal(store, std::move(settings));
  ASSAY_RETURN_IF_ERROR(journal.Read());
  return journal;
}

Result<void> Journal::Read() {
  RecordQuery query;
  query.id = settings_.id;
  query.oldest_first = true;
  query.limit = kPageRecords;
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const std::vector<Record> page, store_->Find(query));
    if (page.empty()) return {};
    for (const Record& record : page) {
      if (record.facts.kind != RecordKind::kStep && record.facts.kind != RecordKind::kResult)
        continue;
      ASSAY_ASSIGN_OR_RETURN(const std::string content, store_->Get(record.content));
      ASSAY_ASSIGN_OR_RETURN(JournalEvent event,
                             TakenApart(record, [&] { return EventOf(record, content); }));
      seconds_ = std::max(seconds_, event.seconds);
      events_.push_back(std::move(event));
    }
    query.after = page.back().sequence;
  }
}

Result<JournalEvent> Journal::EventOf(const Record& record, const std::string& content) {
  const Json json = Json::parse(content, nullptr, false);
  if (!json.is_object())
    return EnvironmentError(fmt::format("record {} is no step of a search", record.sequence));
  JournalEvent event;
  event.key = json.value("key", "");
  event.lineage = {json.value("parents", std::vector<std::string>()), json.value("operation", ""),
                   json.value("note", "")};
  if (record.facts.kind == RecordKind::kStep) {
    event.cost = SpendingOf(json.value("reserved", Json::object()));
    event.seconds = json.value("seconds", 0.0);
    // Older archives do not say it: each may have been in flight.
    event.judged_at_once = json.value("judged_at_once", std::numeric_limits<int64_t>::max());
    event.source_hash = record.source;
    return event;
  }
  if (json.contains("heeded")) {
    event.kind = Kind::kHeeded;
    event.action = json.value("action", "");
    event.text = json.value("text", "");
    event.wish = last_wish_ = json.value("heeded", int64_t{0});
    return event;
  }
  if (json.value("alive", false)) {
    event.kind = Kind::kAlive;
    event.seconds = json.value("seconds", 0.0);
    return event;
  }
  if (json.value("released", false)) {
    event.kind = Kind::kReleased;
    return event;
  }
  event.cost = SpendingOf(json.value("cost", Json::object()));
  if (json.value("lost", false)) {
    event.kind = Kind::kLost;
    return event;
  }
  event.kind = Kind::kResult;
  event.seconds = json.value("seconds", 0.0);
  event.result.duplicate_of = json.value("duplicate_of", "");
  if (json.contains("answer")) event.result.answer = AnswerOf(json["answer"]);
  if (json.contains("error")) {
    const std::string kind = json["error"].value("kind", "");
    event.result.error = Error{kind == "usage" ? ErrorKind::kUsage : ErrorKind::kEnvironment,
                               json["error"].value("message", "")};
  }
  if (json.contains("verdict")) {
    const std::string hash = json.value("verdict", "");
    if (json.value("known", false)) event.result.known = hash;
    ASSAY_ASSIGN_OR_RETURN(const std::string text, store_->Get(hash));
    ASSAY_ASSIGN_OR_RETURN(event.result.verdict, VerdictFromJson(text));
  }
  return event;
}

Result<void> Journal::Write(std::vector<NewRecord> records, Writing writing) {
  if (records.empty()) return {};
  std::move(records.begin(), records.end(), std::back_inserter(unwritten_));
  return writing == Writing::kNow ? Flush() : Result<void>();
}

Result<void> Journal::Flush() {
  if (unwritten_.empty()) return {};
  ASSAY_RETURN_IF_ERROR(store_->Append(unwritten_));
  unwritten_.clear();
  return {};
}

Result<void> Journal::Intend(std::span<const Step* const> steps, std::span<const Spending> reserved,
                             const IntentFacts& facts, Writing writing) {
  std::vector<NewRecord> records;
  for (size_t i = 0; i < steps.size(); ++i) {
    records.push_back(RecordFor(RecordKind::kStep, settings_, steps[i]->key,
                                JsonOf(*steps[i], settings_, reserved[i], facts)));
    records.back().source = steps[i]->source;
  }
  seconds_ = std::max(seconds_, facts.seconds);
  return Write(std::move(records), writing);
}

void Journal::AddRecords(const SettledStep& settled, double seconds,
                         std::vector<NewRecord>* records) const {
  const auto& [step, result, cost] = settled;
  Json json = HeadOf("assay.search.result/1", settings_, step);
  if (!result.duplicate_of.empty()) json["duplicate_of"] = result.duplicate_of;
  if (result.verdict) {
    const Ratio ratio = RatioOf(*result.verdict);
    json["outcome"] = OutcomeName(result.verdict->outcome);
    // That of a duplicate stands there already.
    if (!result.known.empty()) {
      json["verdict"] = result.known;
      json["known"] = true;
    } else if (result.duplicate_of.empty()) {
      const bool first = step.kind == StepKind::kJudge;
      for (NewRecord& record :
           RecordsOfVerdict({step.name, step.source, settings_.problem,
                             first ? settings_.screening_terms : settings_.terms},
                            *result.verdict))
        records->push_back(std::move(record));
      json["verdict"] = Sha256Hex(records->back().content);
    }
    json["verdict_id"] = result.verdict->id;
    json["ratio"] = {{"value", ratio.value}, {"low", ratio.low}, {"high", ratio.high}};
  }
  if (result.error && result.duplicate_of.empty())
    json["error"] = {{"kind", ErrorKindName(result.error->kind)},
                     {"message", result.error->message}};
  if (result.answer) json["answer"] = JsonOf(*result.answer);
  json["cost"] = JsonOf(cost);
  json["seconds"] = seconds;
  records->push_back(RecordFor(RecordKind::kResult, settings_, step.key, json));
  records->back().source = step.source;
}

Result<void> Journal::Settle(std::span<const SettledStep> settled, double seconds,
                             Writing writing) {
  std::vector<NewRecord> records;
  for (const SettledStep& each : settled) AddRecords(each, seconds, &records);
  seconds_ = std::max(seconds_, seconds);
  return Write(std::move(records), writing);
}

Result<void> Journal::Release(std::span<const Step* const> steps) {
  std::vector<NewRecord> records;
  for (const Step* step : steps) {
    Json json = HeadOf("assay.search.result/1", settings_, *step);
    json["released"] = true;
    records.push_back(RecordFor(RecordKind::kResult, settings_, step->key, json));
  }
  return Write(std::move(records), Writing::kNow);
}

Result<void> Journal::Lose(std::span<const Step* const> steps, std::span<const Spending> costs) {
  std::vector<NewRecord> records;
  for (size_t i = 0; i < steps.size(); ++i) {
    Json json = HeadOf("assay.search.result/1", settings_, *steps[i]);
    json["lost"] = true;
    json["cost"] = JsonOf(costs[i]);
    records.push_back(RecordFor(RecordKind::kResult, settings_, steps[i]->key, json));
  }
  return Write(std::move(records), Writing::kNow);
}

Result<void> Journal::Live(double seconds) {
  const Json json = {{"schema", "assay.search.result/1"},
                     {"search", settings_.id},
                     {"alive", true},
                     {"seconds", seconds}};
  seconds_ = std::max(seconds_, seconds);
  return Write({RecordFor(RecordKind::kResult, settings_, std::string(kAliveName), json)},
               Writing::kNow);
}

Result<std::vector<SteerWish>> Journal::NewWishes() {
  RecordQuery query;
  query.kind = RecordKind::kSteer;
  query.id = settings_.id;
  query.after = last_wish_;
  query.oldest_first = true;
  ASSAY_ASSIGN_OR_RETURN(const std::vector<Record> found, store_->Find(query));
  std::vector<SteerWish> wishes;
  for (const Record& record : found) {
    ASSAY_ASSIGN_OR_RETURN(const std::string content, store_->Get(record.content));
    const Json json = Json::parse(content, nullptr, false);
    if (json.is_object())
      wishes.push_back({record.sequence, json.value("action", ""), json.value("text", "")});
  }
  return wishes;
}

Result<void> Journal::Heed(const SteerWish& wish) {
  const Json json = {{"schema", "assay.search.result/1"},
                     {"search", settings_.id},
                     {"heeded", wish.sequence},
                     {"action", wish.action},
                     {"text", wish.text}};
  ASSAY_RETURN_IF_ERROR(
      Write({RecordFor(RecordKind::kResult, settings_, wish.action, json)}, Writing::kNow));
  last_wish_ = wish.sequence;
  return {};
}

Result<void> RecordWish(Store& store, const std::string& search, const std::string& action,
                        const std::string& text) {
  ASSAY_ASSIGN_OR_RETURN(const SearchSettings settings, ReadSearchSettings(store, search));
  const Json json = {{"schema", "assay.search.steer/1"},
                     {"search", settings.id},
                     {"action", action},
                     {"text", text}};
  ASSAY_RETURN_IF_ERROR(
      store.Append(std::vector{RecordFor(RecordKind::kSteer, settings, action, json)}));
  return {};
}

}  // namespace assay
