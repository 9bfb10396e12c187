// Runs a search: asks a strategy for steps, does them within the budget, and writes each into the
// journal before and after it is done.
//
// Theory of operation. A strategy is a function of the results that it has heard, in their order.
// The journal keeps that order. So a search is gone on with by telling a fresh strategy the
// recorded results; it then asks for the same steps, and those without a result are done. An intent
// without a result is a step that was in hand when a process ended. It is recorded as lost, and
// done again. Calls to a proposer, and so many judgements as workers made at once, were in flight:
// they are booked at their reservation. Other candidates had not been begun, and cost nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/stop_token.h"
#include "search/budget.h"
#include "search/journal.h"
#include "search/known_verdicts.h"
#include "search/outcome_table.h"
#include "search/sources.h"
#include "search/step.h"

namespace assay {

struct SearchView {
  const OutcomeTable& table;
  const BudgetLedger& ledger;
  size_t in_hand = 0;
};

struct SearchEvents {
  std::function<void(const SearchView&)> progress = [](const SearchView&) {};
  // After a result was recorded; not for those of earlier processes.
  std::function<void(const Step&, const StepResult&, const SearchView&)> result =
      [](const Step&, const StepResult&, const SearchView&) {};
  std::function<void(const std::string&)> notice = [](const std::string&) {};
  // Names points of the work, for tests that end the process there.
  std::function<void(const char* point)> at = [](const char*) {};
  std::function<int64_t()> now_ns = MonotonicNs;
  int64_t look_for_wishes_ns = 1'000'000'000;  // how often
  // Records that cost nothing to make again, such as a transcript's answers, are on disk after
  // this; all else before anything follows from it.
  int64_t write_within_ns = 200'000'000;
  // If nothing else is recorded for so long, a record says that the process runs: a kill hides no
  // more seconds than these. 0: never.
  int64_t alive_every_ns = 10'000'000'000;
};

// The parts that a search is made of. All must outlive it. `proposals` is null where the strategy
// asks for no proposals.
struct SearchParts {
  Journal& journal;
  Strategy& strategy;
  VerdictSource& judges;
  AnswerSource* proposals = nullptr;
  KnownVerdicts* known = nullptr;  // of earlier searches; null: each is judged
};

class SearchEngine {
 public:
  SearchEngine(SearchParts parts, SearchEvents events);

  // Ends when the strategy has, or when the budget allows no further step, after the finalists were
  // confirmed. Errors: a record cannot be kept, or nothing can be judged here; kInterrupted. What
  // was recorded stays, and the search can be gone on with.
  Result<void> Run(StopToken stop);

  const OutcomeTable& table() const { return table_; }
  const BudgetLedger& ledger() const { return ledger_; }
  // Steps are left that the budget has no room for, or were given up.
  bool budget_ended() const { return !waiting_.empty() || !ledger_.Fits({}); }
  // Of a candidate that was asked for.
  const Step* FindStep(const std::string& key) const;

 private:
  struct Entry {
    Step step;
    Spending reserved;
    std::string duplicate_of;
    enum class State { kWaiting, kInHand, kDone } state = State::kWaiting;
  };

  // An intent without a result.
  struct Open {
    std::string key;
    Spending reserved;
    int64_t judged_at_once = 0;
  };
  Result<void> Replay();
  Result<void> ReplayEvent(const JournalEvent& event, std::vector<Open>* open);
  // Records what was in hand when the last process ended.
  Result<void> BookLost(const std::vector<Open>& open);
  void Accept(std::vector<Step> steps);
  // Tells the strategy and the table.
  void Tell(Entry& entry, const StepResult& result);
  Spending CostOf(const Step& step) const;
  // The part of the budget that is kept for finalists.
  Spending Kept() const;
  Result<void> Dispatch();
  Result<void> DispatchDuplicates();
  Result<void> Send(const std::vector<Entry*>& entries);
  void AddFinalists();
  struct Finished {
    std::string key;
    StepResult result;
  };
  Spending CostOf(const Entry& entry, const StepResult& result) const;
  // Records what came of these steps, then tells it.
  Result<void> Settle(const std::vector<Finished>& finished);
  Result<void> SettleJudged(std::vector<JudgedTask> judged);
  // The result of an earlier step, or search, that built the same.
  StepResult ResultOf(const std::string& artifact) const;
  // A verdict of this process says on which machine it runs, and by which tools it builds.
  Result<void> LearnFrom(const StepResult& result);
  Result<void> HearJudges(int timeout_ms);
  Result<void> HearProposals();
  // Questions without an answer, once nothing else is in hand.
  Result<void> SettleUnanswered();
  // Once the seconds are over: questions are not waited for.
  Result<void> GiveUpQuestions();
  Result<void> HeedWishes();
  Writing WritingOf(bool is_free) const;
  Result<void> WriteInTime();
  Result<void> ShowLife();
  // Waits for verdicts and answers.
  Result<void> Hear();
  Result<void> RunToEnd(StopToken stop);
  Result<void> Stop();
  double Seconds() const;
  SearchView View() const;

  const SearchParts parts_;
  const SearchEvents events_;
  OutcomeTable table_;
  BudgetLedger ledger_;
  std::map<std::string, Entry> entries_;
  std::vector<std::string> waiting_;            // keys, in the order in which they were asked for
  std::map<std::string, std::string> by_text_;  // normalised source -> key of its first step
  std::map<std::string, std::string> by_artifact_;  // its hash -> key of its first step
  std::map<std::string, StepResult> verdicts_;      // of steps that have duplicates or may have
  std::set<std::string> in_hand_;
  int64_t before_ns_ = 0;  // of earlier processes
  int64_t begin_ns_ = 0;
  int64_t looked_ns_ = 0;             // when wishes were last looked for
  int64_t unwritten_ns_ = 0;          // since when records wait to be written
  std::vector<Finished> unanswered_;  // questions since the last answer; still in hand
};

}  // namespace assay
