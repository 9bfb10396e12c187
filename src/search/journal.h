// The memory of a search: records in the archive. Before a step its intent is written, after it its
// result. So what a process knew when it ended can be read again, in the same order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "archive/store.h"
#include "base/result.h"
#include "search/budget.h"
#include "search/step.h"

namespace assay {

// A candidate with the verdict that it had at another size, or on another machine.
struct PortedKernel {
  std::string name, source;
  std::string verdict;  // as JSON
};

// All that a search was begun with. It never changes.
struct SearchSettings {
  std::string id;  // 12 hexadecimal digits
  uint64_t seed = 0;
  std::string problem;  // its name
  // TermsText (worker/protocol.h), with the problem: of the second look, and of the first.
  std::string terms, screening_terms;
  std::string strategy, proposer;      // as asked for
  std::string from_name, from_source;  // the candidate to begin with; may be empty
  Spending budget;
  int64_t finalists = 3;  // that are judged again
  int64_t width = 8;      // candidates in hand at a time
  int64_t chains = 4, turns = 4;
  int64_t askers = 4;    // answers that are awaited at a time
  std::string verdicts;  // an archive, whose verdicts take the place of judging; may be empty
  // Candidates that build to what the archive has a verdict on are not judged.
  bool knows = false;
  bool ablates = false;             // evolve takes tricks out of its best candidates
  std::vector<PortedKernel> ports;  // for evolve
  bool races = false;               // first looks give up what cannot exceed the best so far
  // Of searches by a proposer.
  std::string form;                    // "native", "device", "python"
  std::vector<std::string> signature;  // of the problem, a line an argument
  std::string prompts;                 // folder with templates of the user's own; may be empty
  int64_t prompt_tokens = 16'000, answer_tokens = 16'384;
  double temperature = 1;
};

// A record of the journal.
struct JournalEvent {
  enum class Kind {
    kIntent,
    kResult,
    kReleased,  // the attempt was given up, and costs nothing
    kLost,      // its process ended before it
    kHeeded,    // a person's wish was passed on to the strategy
    kAlive,     // the process still ran
  };
  Kind kind = Kind::kIntent;
  std::string key;
  Lineage lineage;
  Spending cost;       // kIntent: what was reserved; kResult, kLost: what it cost, without seconds
  double seconds = 0;  // kIntent, kResult, kAlive: that the search had taken until then
  int64_t judged_at_once = 0;  // kIntent: judgements that were made at one moment
  StepResult result;           // kResult: of a duplicate, `duplicate_of` alone
  std::string source_hash;     // kIntent: of the candidate
  std::string action, text;    // kHeeded
  int64_t wish = 0;            // kHeeded: its sequence
};

// When steps were about to be done.
struct IntentFacts {
  double seconds = 0;  // that the search had taken
  int64_t judged_at_once = 1;
};

struct SettledStep {
  const Step& step;
  const StepResult& result;
  Spending cost;
};

struct SteerWish {
  int64_t sequence = 0;
  std::string action, text;
};

// When records are on disk. kNow: when the call returns. kSoon: with the next ones, or by Flush:
// for what costs nothing to do again.
enum class Writing { kNow, kSoon };

class Journal {
 public:
  // The archive must outlive the journal. A new search: its settings are recorded, after `files`
  // that it is about.
  static Result<Journal> Begin(Store& store, const SearchSettings& settings,
                               std::vector<NewRecord> files = {});
  // An earlier one. Without an id the newest. Errors: there is none (kUsage); its records cannot be
  // read.
  static Result<Journal> Open(Store& store, const std::string& id);

  const SearchSettings& settings() const { return settings_; }
  // Its events when it was opened.
  const std::vector<JournalEvent>& events() const { return events_; }

  Result<void> Intend(std::span<const Step* const> steps, std::span<const Spending> reserved,
                      const IntentFacts& facts, Writing writing = Writing::kNow);
  // Several results are recorded in one moment, each verdict beside its step's: as `assay judge`
  // would record it.
  Result<void> Settle(std::span<const SettledStep> settled, double seconds,
                      Writing writing = Writing::kNow);
  Result<void> Release(std::span<const Step* const> steps);
  // They were in hand when an earlier process ended; `costs` are booked for them.
  Result<void> Lose(std::span<const Step* const> steps, std::span<const Spending> costs);
  // The process still runs: if it is killed, its seconds until now are known.
  Result<void> Live(double seconds);
  // The greatest number of seconds that was recorded.
  double seconds() const { return seconds_; }
  Result<void> Flush();
  size_t unwritten() const { return unwritten_.size(); }
  // Wishes that were recorded and not yet passed on.
  Result<std::vector<SteerWish>> NewWishes();
  Result<void> Heed(const SteerWish& wish);

 private:
  Journal(Store& store, SearchSettings settings) : store_(&store), settings_(std::move(settings)) {}
  Result<void> Read();
  Result<void> Write(std::vector<NewRecord> records, Writing writing);
  void AddRecords(const SettledStep& settled, double seconds,
                  std::vector<NewRecord>* records) const;
  Result<JournalEvent> EventOf(const Record& record, const std::string& content);

  Store* store_;
  SearchSettings settings_;
  std::vector<JournalEvent> events_;
  std::vector<NewRecord> unwritten_;
  double seconds_ = 0;
  int64_t last_wish_ = 0;  // sequence of the last one that was passed on
};

// The name of the records of `Live`, which a replay does not compare: they tell of the clock alone.
inline constexpr std::string_view kAliveName = "alive";

// Records a wish for a running search. Errors (kUsage): there is no such search.
Result<void> RecordWish(Store& store, const std::string& search, const std::string& action,
                        const std::string& text);

// The settings of the search with this id; of the newest, if `id` is empty.
Result<SearchSettings> ReadSearchSettings(Store& store, const std::string& id);

}  // namespace assay
