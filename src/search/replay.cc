#include "search/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "base/hash.h"

namespace assay {
namespace {

using Json = nlohmann::json;
using Kind = JournalEvent::Kind;

constexpr size_t kExcerptCharacters = 160;
constexpr int64_t kPageRecords = 1000;

std::string NameOf(RecordKind kind, const std::string& key) {
  return fmt::format("{} {}", RecordKindName(kind), key);
}

// The characters from shortly before the place on at which two texts part.
std::string Excerpt(const std::string& text, size_t place) {
  constexpr size_t kBefore = 40;
  const size_t from = place < kBefore ? 0 : place - kBefore;
  std::string part = text.substr(std::min(from, text.size()), kExcerptCharacters);
  if (from > 0) part = "..." + part;
  if (from + kExcerptCharacters < text.size()) part += "...";
  return part;
}

struct Parting {
  std::string place, recorded, replayed;
};

// The first place at which two contents differ, and what stands there.
Parting PartingOf(const std::string& recorded, const std::string& replayed) {
  const Json old_json = Json::parse(recorded, nullptr, false);
  const Json new_json = Json::parse(replayed, nullptr, false);
  std::string old_text = recorded, new_text = replayed;
  std::string where = "content";
  if (!old_json.is_discarded() && !new_json.is_discarded()) {
    const Json patch = Json::diff(old_json, new_json);
    if (!patch.empty()) {
      where = patch[0].value("path", "");
      const Json::json_pointer pointer(where);
      const auto text = [&](const Json& json) {
        return json.contains(pointer)
                   ? json.at(pointer).dump(-1, ' ', false, Json::error_handler_t::replace)
                   : std::string("nothing");
      };
      old_text = text(old_json);
      new_text = text(new_json);
    }
  }
  const auto [old_end, new_end] =
      std::mismatch(old_text.begin(), old_text.end(), new_text.begin(), new_text.end());
  const auto place = static_cast<size_t>(old_end - old_text.begin());
  return {where, Excerpt(old_text, place), Excerpt(new_text, place)};
}

// Tells how long a process ran: nothing was decided.
bool IsOfTheClock(const RecordFacts& facts) {
  return facts.kind == RecordKind::kResult && facts.name == kAliveName;
}

// The records of a search, and how many of them the replay has reached.
struct Script {
  std::vector<Record> records;       // the settings, then steps and results
  std::vector<JournalEvent> events;  // of the records but the first
  size_t reached = 0;                // records
  int64_t clock_ns = 0;              // of what was reached
  std::optional<ReplayDifference> difference;
  size_t difference_at = 0;  // its record
  std::string beyond;        // the record that was appended after the last one

  // Null: there is none. While the settings are not reached, the event after them.
  const JournalEvent* Next(size_t further = 0) const {
    const size_t event = (reached == 0 ? 0 : reached - 1) + further;
    return event < events.size() ? &events[event] : nullptr;
  }

  // The first of those at one place counts: the next process was only an attempt.
  void Differ(const std::string& place, const std::string& recorded, const std::string& replayed) {
    if (reached == records.size() || (difference && difference_at == reached)) return;
    const Record& record = records[reached];
    difference = {record.sequence, NameOf(record.facts.kind, record.facts.name), place, recorded,
                  replayed};
    difference_at = reached;
  }
};

int64_t NsOf(const JournalEvent& event) { return std::llround(event.seconds * 1e9); }

// Stands in for the archive: shows what was reached, and compares what is appended.
class ComparingStore : public Store {
 public:
  ComparingStore(Store& archive, Script& script) : archive_(archive), script_(script) {}

  Result<std::string> Put(std::string_view) override {
    return EnvironmentError("a replay writes nothing");
  }
  Result<int64_t> Adopt(std::span<const Record>, std::span<const std::string>) override {
    return EnvironmentError("a replay writes nothing");
  }
  Result<std::string> Get(const std::string& hash) override { return archive_.Get(hash); }
  Result<std::vector<Record>> Append(std::span<const NewRecord> records) override {
    for (const NewRecord& record : records) {
      const RecordKind kind = record.facts.kind;
      // Those beside a result are named in it by their hashes.
      if (kind != RecordKind::kSearch && kind != RecordKind::kStep && kind != RecordKind::kResult)
        continue;
      if (IsOfTheClock(record.facts)) continue;
      ASSAY_RETURN_IF_ERROR(Take(record));
    }
    return std::vector<Record>();
  }
  Result<std::vector<Record>> Find(const RecordQuery& query) override {
    if (query.kind == RecordKind::kSearch) return archive_.Find(query);
    if (query.kind == RecordKind::kSteer) return NextWish(query);
    std::vector<Record> found;
    for (size_t i = 0; i < script_.reached && std::ssize(found) < kPageRecords; ++i)
      if (script_.records[i].sequence > query.after) found.push_back(script_.records[i]);
    return found;
  }

 private:
  Result<void> Take(const NewRecord& record) {
    const std::string name = NameOf(record.facts.kind, record.facts.name);
    if (script_.reached == script_.records.size()) {
      script_.beyond = name;
      return EnvironmentError("the records end here");
    }
    const Record& recorded = script_.records[script_.reached];
    const std::string expected = NameOf(recorded.facts.kind, recorded.facts.name);
    const auto hash = [](const std::string& text) { return text.empty() ? "" : Sha256Hex(text); };
    if (name != expected) {
      script_.Differ("record", expected, name);
    } else if (Sha256Hex(record.content) != recorded.content) {
      ASSAY_ASSIGN_OR_RETURN(const std::string content, archive_.Get(recorded.content));
      const Parting parting = PartingOf(content, record.content);
      script_.Differ(parting.place, parting.recorded, parting.replayed);
    } else if (hash(record.source) != recorded.source) {
      script_.Differ("source", recorded.source, hash(record.source));
    } else if (hash(record.terms) != recorded.terms) {
      script_.Differ("terms", recorded.terms, hash(record.terms));
    } else {
      if (const JournalEvent* event = script_.reached > 0 ? script_.Next() : nullptr)
        script_.clock_ns = std::max(script_.clock_ns, NsOf(*event));
      ++script_.reached;
      return {};
    }
    return EnvironmentError("the replay differs");
  }

  // The wishes that were heeded next.
  Result<std::vector<Record>> NextWish(const RecordQuery& query) {
    std::set<int64_t> heeded;
    for (const JournalEvent* next = script_.Next(); next != nullptr && next->kind == Kind::kHeeded;
         next = script_.Next(heeded.size()))
      heeded.insert(next->wish);
    if (heeded.empty()) return std::vector<Record>();
    ASSAY_ASSIGN_OR_RETURN(std::vector<Record> wishes, archive_.Find(query));
    std::erase_if(wishes, [&](const Record& each) { return !heeded.contains(each.sequence); });
    return wishes;
  }

  Store& archive_;
  Script& script_;
};

// Of the engine's steps, those whose results have not come.
struct InHand {
  std::set<std::string> judged, asked;
};

class RecordedJudges : public VerdictSource {
 public:
  RecordedJudges(Script& script, InHand& in_hand) : script_(script), in_hand_(in_hand) {}
  std::atomic<bool> interrupted = false;

  void Add(JudgeTask task) override { in_hand_.judged.insert(task.key); }
  void Know(const std::string& /*artifact*/) override {}
  void Race(double /*bound*/) override {}
  Result<std::vector<JudgedTask>> Wait(int) override {
    std::vector<JudgedTask> judged = Take();
    const JournalEvent* next = script_.Next(judged.size());
    const bool released = next != nullptr && next->kind == Kind::kReleased;
    const bool answers = next != nullptr && in_hand_.asked.contains(next->key) &&
                         (released || next->kind == Kind::kResult);
    if (Releases(script_.Next(judged.size() + BatchFrom(judged.size())))) {
      interrupted = true;  // by Ctrl-C; the last verdicts may have come after it
    } else if (judged.empty() && !answers) {
      if (next == nullptr)
        script_.beyond =
            fmt::format("result {}", in_hand_.judged.empty() ? *in_hand_.asked.begin()
                                                             : *in_hand_.judged.begin());
      else
        script_.Differ("record", next->key, "nothing: it waits");
      return EnvironmentError("the process ended here");
    }
    return judged;
  }
  std::vector<JudgedTask> Stop() override { return Take(); }
  size_t judged_at_once() const override {
    const JournalEvent* next = script_.Next();
    return next == nullptr ? 1 : static_cast<size_t>(next->judged_at_once);
  }

 private:
  // The verdicts that were recorded next, in one moment.
  std::vector<JudgedTask> Take() {
    std::vector<JudgedTask> judged;
    for (size_t count = BatchFrom(0); judged.size() < count;) {
      const JournalEvent& event = *script_.Next(judged.size());
      JudgedTask task{event.key,
                      event.result.verdict,
                      event.result.error,
                      event.cost == Spending(),
                      ArtifactOf(event.result.duplicate_of),
                      event.result.known};
      judged.push_back(std::move(task));
    }
    for (const JudgedTask& each : judged) in_hand_.judged.erase(each.key);
    return judged;
  }
  // The artifact of a step's verdict; empty for a step without one.
  std::string ArtifactOf(const std::string& key) const {
    for (const JournalEvent& event : script_.events)
      if (!key.empty() && event.key == key && event.result.verdict)
        return event.result.verdict->candidate.artifact;
    return {};
  }
  // How many events from this one on are such verdicts.
  size_t BatchFrom(size_t first) const {
    size_t count = 0;
    while (Gives(script_.Next(first + count)) &&
           script_.Next(first + count)->seconds == script_.Next(first)->seconds)
      ++count;
    return count;
  }
  bool Releases(const JournalEvent* event) const {
    return event != nullptr && event->kind == Kind::kReleased &&
           in_hand_.judged.contains(event->key);
  }
  bool Gives(const JournalEvent* event) const {
    return event != nullptr && event->kind == Kind::kResult && in_hand_.judged.contains(event->key);
  }

  Script& script_;
  InHand& in_hand_;
};

class RecordedAnswers : public AnswerSource {
 public:
  RecordedAnswers(const Script& script, InHand& in_hand, size_t asked_at_once)
      : script_(script), in_hand_(in_hand), asked_at_once_(asked_at_once) {
    for (const JournalEvent& event : script.events)
      if (event.kind == Kind::kIntent) reserved_[event.key] = event.cost;
  }

  void Add(const Prompt& prompt) override { in_hand_.asked.insert(prompt.key); }
  bool busy() const override { return !in_hand_.asked.empty(); }
  bool Await(int) override { return true; }
  std::vector<Proposed> Take() override {
    std::vector<Proposed> taken;
    const JournalEvent* first = script_.Next();
    for (const JournalEvent* next = first;
         next != nullptr && in_hand_.asked.contains(next->key) && next->seconds == first->seconds &&
         next->kind == first->kind;
         next = script_.Next(taken.size())) {
      if (next->kind == Kind::kResult && next->result.answer)
        taken.push_back({next->key, *next->result.answer});
      else if (next->kind == Kind::kResult && next->result.error)
        taken.push_back({next->key, std::unexpected(*next->result.error)});
      else if (next->kind == Kind::kReleased)
        taken.push_back({next->key, UsageError("the proposer refused")});
      else
        break;
      in_hand_.asked.erase(next->key);
    }
    return taken;
  }
  Usage Reservation(const Prompt& prompt) const override {
    const auto found = reserved_.find(prompt.key);
    if (found == reserved_.end()) return {};
    return {0, found->second.tokens, found->second.usd, 0};
  }
  bool IsFree() const override { return false; }
  size_t asked_at_once() const override { return asked_at_once_; }

 private:
  const Script& script_;
  InHand& in_hand_;
  const size_t asked_at_once_;
  std::map<std::string, Spending> reserved_;
};

Result<Script> ReadScript(Store& archive, const std::string& id) {
  Script script;
  ASSAY_ASSIGN_OR_RETURN(const Journal journal, Journal::Open(archive, id));
  script.events = journal.events();
  std::erase_if(script.events, [](const JournalEvent& each) { return each.kind == Kind::kAlive; });
  RecordQuery query;
  query.id = journal.settings().id;
  query.oldest_first = true;
  query.limit = kPageRecords;
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(std::vector<Record> page, archive.Find(query));
    if (page.empty()) break;
    query.after = page.back().sequence;
    std::erase_if(page, [](const Record& each) {
      return each.facts.kind == RecordKind::kSteer || IsOfTheClock(each.facts);
    });
    std::move(page.begin(), page.end(), std::back_inserter(script.records));
  }
  if (script.records.size() != script.events.size() + 1)
    return EnvironmentError(fmt::format("the records of search {} are not whole", query.id));
  return script;
}

// Runs the search from what was reached, as one process did. True: it has ended.
Result<bool> RunProcess(Store& archive, const SearchSettings& settings,
                        const StrategyMaker& make_strategy, Script& script,
                        const std::function<void(const SearchEngine&)>& ended) {
  ComparingStore store(archive, script);
  ASSAY_ASSIGN_OR_RETURN(const auto strategy, make_strategy(settings));
  auto journal =
      script.reached == 0 ? Journal::Begin(store, settings) : Journal::Open(store, settings.id);
  if (!journal) return false;
  InHand in_hand;
  RecordedJudges judges(script, in_hand);
  RecordedAnswers answers(script, in_hand, static_cast<size_t>(settings.askers));
  SearchEvents events;
  events.look_for_wishes_ns = 0;
  events.write_within_ns = 0;
  events.alive_every_ns = 0;
  // The first look is the beginning of the process.
  const auto budget_ns = static_cast<int64_t>(settings.budget.seconds * 1e9);
  events.now_ns = [&, first = true]() mutable {
    if (std::exchange(first, false)) return script.clock_ns;
    const JournalEvent* next = script.Next();
    return std::max(script.clock_ns, next == nullptr ? budget_ns : NsOf(*next));
  };
  SearchEngine engine({*journal, *strategy, judges, &answers}, events);
  const bool has_ended = engine.Run(StopToken(judges.interrupted)).has_value();
  if (has_ended || script.reached == script.records.size()) ended(engine);
  return has_ended;
}

}  // namespace

Result<ReplayReport> ReplaySearch(Store& archive, const std::string& id,
                                  const StrategyMaker& make_strategy,
                                  const std::function<void(const SearchEngine&)>& ended) {
  ASSAY_ASSIGN_OR_RETURN(const SearchSettings settings, ReadSearchSettings(archive, id));
  ASSAY_ASSIGN_OR_RETURN(Script script, ReadScript(archive, settings.id));
  ReplayReport report;
  report.records = std::ssize(script.records);
  while (true) {
    const size_t before = script.reached;
    ++report.processes;
    ASSAY_ASSIGN_OR_RETURN(const bool has_ended,
                           RunProcess(archive, settings, make_strategy, script, ended));
    if (has_ended || script.reached == script.records.size() || script.reached == before) break;
  }
  report.same = static_cast<int64_t>(script.reached);
  for (const JournalEvent& event : script.events) {
    if (event.kind != Kind::kResult) continue;
    report.answers += event.result.answer.has_value();
    report.verdicts += event.result.verdict.has_value() && event.result.duplicate_of.empty() &&
                       event.result.known.empty();
  }
  report.next = script.beyond;
  if (script.reached == script.records.size()) return report;
  script.Differ("record", script.records[script.reached].facts.name, "nothing: it has ended");
  report.difference = script.difference;
  return report;
}

}  // namespace assay
