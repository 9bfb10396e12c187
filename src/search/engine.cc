#include "search/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "base/trace.h"
#include "report/text.h"
#include "search/normalise.h"
#include "toolchain/build.h"

namespace assay {
namespace {

constexpr size_t kJudgedInHandMax = 32;
constexpr size_t kUnansweredMax = 8;
constexpr int kWaitMs = 200;
constexpr int kWaitForAnswersMs = 5;
constexpr size_t kUnwrittenMax = 2000;

// The text by which duplicates are known.
std::string FingerprintOf(const Step& step) {
  const auto source = CandidateFromText(step.name, step.source);
  return Sha256Hex(source ? NormalisedSource(step.source, source->language) : step.source);
}

}  // namespace

SearchEngine::SearchEngine(SearchParts parts, SearchEvents events)
    : parts_(parts), events_(std::move(events)), ledger_(parts.journal.settings().budget) {}

const Step* SearchEngine::FindStep(const std::string& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second.step;
}

double SearchEngine::Seconds() const {
  return static_cast<double>(before_ns_ + events_.now_ns() - begin_ns_) / 1e9;
}

SearchView SearchEngine::View() const { return {table_, ledger_, in_hand_.size()}; }

void SearchEngine::Accept(std::vector<Step> steps) {
  for (Step& step : steps) {
    Entry entry{std::move(step), {}, "", Entry::State::kWaiting};
    const std::string key = entry.step.key;
    if (entry.step.kind == StepKind::kJudge) {
      const auto [first, is_new] = by_text_.emplace(FingerprintOf(entry.step), key);
      if (!is_new) entry.duplicate_of = first->second;
    }
    const bool added = entries_.emplace(key, std::move(entry)).second;
    ASSAY_CHECK(added);  // keys are unique
    waiting_.push_back(key);
  }
}

void SearchEngine::Tell(Entry& entry, const StepResult& result) {
  entry.state = Entry::State::kDone;
  if (entry.step.kind == StepKind::kConfirm) return table_.Confirmed(entry.step, result);
  if (entry.step.kind == StepKind::kPropose) table_.Asked(result);
  if (entry.step.kind == StepKind::kJudge) {
    table_.Judged(entry.step, result);
    if (parts_.journal.settings().races) parts_.judges.Race(table_.Bound());
    StepResult& kept = verdicts_[entry.step.key] = result;
    kept.known.clear();  // what is the same as it is a duplicate of this step
    if (kept.verdict) {
      kept.verdict->samples.clear();
      const std::string& artifact = kept.verdict->candidate.artifact;
      if (!artifact.empty() && by_artifact_.emplace(artifact, entry.step.key).second)
        parts_.judges.Know(artifact);
    }
  }
  Accept(parts_.strategy.Heard(entry.step, result));
}

Spending SearchEngine::CostOf(const Step& step) const {
  if (step.kind != StepKind::kPropose) return {0, 0, 1, 0};
  const Usage usage = parts_.proposals->Reservation(step.prompt);
  return {usage.usd, usage.tokens_in + usage.tokens_out, 0, 0};
}

Spending SearchEngine::Kept() const {
  const SearchSettings& settings = parts_.journal.settings();
  const auto done = static_cast<int64_t>(table_.confirmations().size());
  const int64_t left = std::max<int64_t>(0, settings.finalists - done);
  Spending kept;
  // A quarter of a small budget, so that something is left to confirm.
  if (const int64_t all = settings.budget.evaluations; all > 1)
    kept.evaluations =
        std::max<int64_t>(0, std::min(settings.finalists, std::max<int64_t>(1, all / 4)) - done);
  if (ledger_.spent().evaluations > 0)
    kept.seconds = 2 * static_cast<double>(left) * ledger_.spent().seconds /
                   static_cast<double>(ledger_.spent().evaluations);
  return kept;
}

Result<void> SearchEngine::Send(const std::vector<Entry*>& entries) {
  std::vector<const Step*> steps;
  std::vector<Spending> reserved;
  for (Entry* entry : entries) {
    steps.push_back(&entry->step);
    reserved.push_back(entry->reserved);
  }
  events_.at("before intent");
  const bool is_free = std::all_of(entries.begin(), entries.end(), [&](const Entry* entry) {
    return entry->step.kind == StepKind::kPropose && parts_.proposals->IsFree();
  });
  ASSAY_RETURN_IF_ERROR(parts_.journal.Intend(
      steps, reserved,
      {ledger_.spent().seconds, static_cast<int64_t>(parts_.judges.judged_at_once())},
      WritingOf(is_free)));
  events_.at("after intent");
  for (Entry* entry : entries) {
    entry->state = Entry::State::kInHand;
    in_hand_.insert(entry->step.key);
    std::erase(waiting_, entry->step.key);
    if (entry->step.kind == StepKind::kPropose) {
      Prompt prompt = entry->step.prompt;
      prompt.key = entry->step.key;
      parts_.proposals->Add(prompt);
      continue;
    }
    auto source = CandidateFromText(entry->step.name, entry->step.source);
    if (source) {
      parts_.judges.Add(
          {entry->step.key, std::move(*source), entry->step.kind == StepKind::kConfirm});
    } else {
      ASSAY_RETURN_IF_ERROR(
          Settle({{entry->step.key, {std::nullopt, std::nullopt, source.error(), ""}}}));
    }
  }
  events_.at("after sending");
  return {};
}

Result<void> SearchEngine::DispatchDuplicates() {
  while (true) {
    std::vector<Finished> finished;
    for (const std::string& key : waiting_) {
      const std::string& original = entries_.at(key).duplicate_of;
      const auto first = verdicts_.find(original);
      if (original.empty() || first == verdicts_.end()) continue;
      finished.push_back({key, first->second});
      // That one may be a duplicate itself, by its artifact.
      std::string& told = finished.back().result.duplicate_of;
      if (told.empty()) told = original;
    }
    if (finished.empty()) return {};
    for (const Finished& each : finished) std::erase(waiting_, each.key);
    ASSAY_RETURN_IF_ERROR(Settle(finished));
  }
}

Result<void> SearchEngine::Dispatch() {
  ledger_.SetSeconds(Seconds());
  ASSAY_RETURN_IF_ERROR(DispatchDuplicates());
  size_t judged = 0, asked = 0;
  for (const std::string& key : in_hand_)
    (entries_.at(key).step.kind == StepKind::kPropose ? asked : judged) += 1;
  asked -= unanswered_.size();  // nobody works on them
  const Spending kept = Kept();
  // Evaluations that candidates will need: an answer that cannot be judged is money lost.
  auto candidates = static_cast<int64_t>(asked);
  for (const std::string& key : waiting_)
    if (const Entry& entry = entries_.at(key);
        entry.step.kind == StepKind::kJudge && entry.duplicate_of.empty())
      ++candidates;
  bool judges_full = false, proposals_full = false;
  std::vector<Entry*> sent;
  for (const std::string& key : waiting_) {
    Entry& entry = entries_.at(key);
    if (!entry.duplicate_of.empty()) continue;
    const bool asks = entry.step.kind == StepKind::kPropose;
    bool& full = asks ? proposals_full : judges_full;
    const size_t room = asks ? parts_.proposals->asked_at_once() : kJudgedInHandMax;
    if (asks) ASSAY_RETURN_IF_ERROR(parts_.proposals->Check(entry.step.prompt));
    entry.reserved = CostOf(entry.step);
    Spending needed = entry.reserved;
    if (asks) needed.evaluations += candidates + 1;
    const bool confirms = entry.step.kind == StepKind::kConfirm;
    // In order: a later step does not overtake one that does not fit.
    full = full || (asks ? asked : judged) >= room ||
           !ledger_.Fits(needed, confirms ? Spending() : kept);
    if (full) continue;
    ledger_.Reserve(entry.reserved);
    (asks ? asked : judged) += 1;
    // One that waited is reserved now.
    candidates += asks ? 1 : entry.step.kind == StepKind::kJudge ? -1 : 0;
    sent.push_back(&entry);
  }
  if (sent.empty()) return {};
  return Send(sent);
}

void SearchEngine::AddFinalists() {
  const auto count = static_cast<size_t>(parts_.journal.settings().finalists);
  std::vector<std::string> confirmations;
  for (const std::string& key : table_.Finalists(count)) {
    const Step confirmation = ConfirmationOf(entries_.at(key).step);
    if (!entries_.contains(confirmation.key)) Accept({confirmation});
    confirmations.push_back(confirmation.key);
  }
  // They go before what the budget has no room for.
  std::stable_partition(waiting_.begin(), waiting_.end(), [&](const std::string& key) {
    return std::find(confirmations.begin(), confirmations.end(), key) != confirmations.end();
  });
}

Spending SearchEngine::CostOf(const Entry& entry, const StepResult& result) const {
  if (!result.duplicate_of.empty() || result.is_free) return {};
  // Of a call without an answer nobody knows the cost.
  if (!result.answer) return entry.reserved;
  const Usage& usage = result.answer->usage;
  return {usage.usd, usage.tokens_in + usage.tokens_out, 0, 0};
}

Result<void> SearchEngine::Settle(const std::vector<Finished>& finished) {
  if (finished.empty()) return {};
  std::vector<SettledStep> settled;
  for (const auto& [key, result] : finished) {
    const Entry& entry = entries_.at(key);
    settled.push_back({entry.step, result, CostOf(entry, result)});
  }
  const bool is_free = std::all_of(finished.begin(), finished.end(), [&](const Finished& each) {
    return !each.result.duplicate_of.empty() || (each.result.answer && parts_.proposals->IsFree());
  });
  events_.at("before result");
  ASSAY_RETURN_IF_ERROR(parts_.journal.Settle(settled, Seconds(), WritingOf(is_free)));
  events_.at("after result");
  ledger_.SetSeconds(Seconds());
  for (size_t i = 0; i < finished.size(); ++i) {
    Entry& entry = entries_.at(finished[i].key);
    if (in_hand_.erase(finished[i].key) > 0) ledger_.Settle(entry.reserved, settled[i].cost);
    Tell(entry, finished[i].result);
    events_.result(entry.step, finished[i].result, View());
    ASSAY_RETURN_IF_ERROR(LearnFrom(finished[i].result));
  }
  return {};
}

Result<void> SearchEngine::HearJudges(int timeout_ms) {
  ASSAY_ASSIGN_OR_RETURN(std::vector<JudgedTask> judged, parts_.judges.Wait(timeout_ms));
  return SettleJudged(std::move(judged));
}

StepResult SearchEngine::ResultOf(const std::string& artifact) const {
  const auto first = by_artifact_.find(artifact);
  if (first == by_artifact_.end()) {
    auto known = parts_.known != nullptr
                     ? parts_.known->Find(artifact)
                     : EnvironmentError("the worker knows a build that nobody named");
    if (!known) return {std::nullopt, std::nullopt, known.error(), ""};
    return {std::nullopt, std::move(known->verdict), std::nullopt, "", true, known->content};
  }
  StepResult result = verdicts_.at(first->second);
  result.duplicate_of = first->second;
  return result;
}

Result<void> SearchEngine::LearnFrom(const StepResult& result) {
  const bool own = result.verdict && result.duplicate_of.empty() && result.known.empty();
  if (!own || parts_.known == nullptr || result.verdict->candidate.artifact.empty()) return {};
  ASSAY_ASSIGN_OR_RETURN(const auto artifacts, parts_.known->Learn(*result.verdict));
  for (const std::string& artifact : artifacts) parts_.judges.Know(artifact);
  return {};
}

Result<void> SearchEngine::SettleJudged(std::vector<JudgedTask> judged) {
  // The verdict on an artifact may come at one time with word that it is known.
  for (const bool known : {false, true}) {
    std::vector<Finished> finished;
    for (JudgedTask& task : judged) {
      if (task.known.empty() == known) continue;
      finished.push_back({task.key, known ? ResultOf(task.known)
                                          : StepResult{std::nullopt, std::move(task.verdict),
                                                       std::move(task.error), "", task.is_free,
                                                       std::move(task.recorded)}});
    }
    ASSAY_RETURN_IF_ERROR(Settle(finished));
  }
  return {};
}

Result<void> SearchEngine::HearProposals() {
  std::vector<Finished> answered;
  std::vector<const Step*> refused;
  std::optional<Error> refusal;
  for (Proposed& proposed : parts_.proposals->Take()) {
    if (proposed.answer) {
      answered.push_back(
          {proposed.key, {std::move(*proposed.answer), std::nullopt, std::nullopt, ""}});
    } else if (proposed.answer.error().kind == ErrorKind::kEnvironment) {
      const Error& error = proposed.answer.error();
      if (unanswered_.empty() || unanswered_.back().result.error->message != error.message)
        events_.notice(fmt::format("{}: {}", proposed.key, error.message));
      unanswered_.push_back({proposed.key, {std::nullopt, std::nullopt, error, ""}});
    } else {
      // The same for every prompt: the step waits until the search is gone on with.
      refused.push_back(FindStep(proposed.key));
      refusal = proposed.answer.error();
    }
  }
  if (!answered.empty()) {
    // Others are answered: those without an answer have themselves to blame.
    ASSAY_RETURN_IF_ERROR(Settle(std::exchange(unanswered_, {})));
    ASSAY_RETURN_IF_ERROR(Settle(answered));
  }
  ASSAY_RETURN_IF_ERROR(parts_.journal.Release(refused));
  if (refusal) return std::unexpected(*refusal);
  return {};
}

// If nobody answers, the questions stay open: their intents stand, and they are asked again when
// the search is gone on with.
Result<void> SearchEngine::SettleUnanswered() {
  const size_t in_a_row = table_.unanswered_in_a_row() + unanswered_.size();
  if (table_.answers() == 0 || in_a_row >= kUnansweredMax)
    return EnvironmentError(fmt::format("nobody answers: {} in a row without an answer: {}",
                                        Counted(std::ssize(unanswered_), "question"),
                                        unanswered_.back().result.error->message));
  return Settle(std::exchange(unanswered_, {}));
}

Result<void> SearchEngine::GiveUpQuestions() {
  const double limit = ledger_.limits().seconds;
  if (limit <= 0 || Seconds() < limit) return {};
  const Error error{ErrorKind::kEnvironment, "there was no answer before the seconds were over"};
  std::vector<Finished> given_up;
  for (const std::string& key : in_hand_) {
    if (entries_.at(key).step.kind != StepKind::kPropose) return {};  // its verdict comes soon
    given_up.push_back({key, {std::nullopt, std::nullopt, error, ""}});
  }
  unanswered_.clear();
  return Settle(given_up);
}

Result<void> SearchEngine::HeedWishes() {
  const int64_t now_ns = events_.now_ns();
  if (looked_ns_ > 0 && now_ns - looked_ns_ < events_.look_for_wishes_ns) return {};
  looked_ns_ = now_ns;
  ASSAY_ASSIGN_OR_RETURN(const std::vector<SteerWish> wishes, parts_.journal.NewWishes());
  for (const SteerWish& wish : wishes) {
    ASSAY_RETURN_IF_ERROR(parts_.journal.Heed(wish));
    Accept(parts_.strategy.Steered(wish.action, wish.text));
  }
  return {};
}

Result<void> SearchEngine::Stop() {
  ASSAY_RETURN_IF_ERROR(SettleJudged(parts_.judges.Stop()));
  // A call to a proposer may have to be paid for: its intent stands.
  std::vector<const Step*> released;
  for (const std::string& key : in_hand_)
    if (entries_.at(key).step.kind != StepKind::kPropose)
      released.push_back(&entries_.at(key).step);
  return parts_.journal.Release(released);
}

Writing SearchEngine::WritingOf(bool is_free) const {
  return is_free && events_.write_within_ns > 0 ? Writing::kSoon : Writing::kNow;
}

Result<void> SearchEngine::WriteInTime() {
  const int64_t now_ns = events_.now_ns();
  if (parts_.journal.unwritten() == 0) unwritten_ns_ = now_ns;
  if (parts_.journal.unwritten() < kUnwrittenMax &&
      now_ns - unwritten_ns_ < events_.write_within_ns)
    return {};
  unwritten_ns_ = now_ns;
  return parts_.journal.Flush();
}

Result<void> SearchEngine::ShowLife() {
  const double silent_ns = (Seconds() - parts_.journal.seconds()) * 1e9;
  if (events_.alive_every_ns <= 0 || silent_ns < static_cast<double>(events_.alive_every_ns))
    return {};
  return parts_.journal.Live(Seconds());
}

Result<void> SearchEngine::Hear() {
  bool judges = false;
  for (const std::string& key : in_hand_)
    judges = judges || entries_.at(key).step.kind != StepKind::kPropose;
  const bool asks = parts_.proposals != nullptr && parts_.proposals->busy();
  if (!asks) return HearJudges(kWaitMs);
  // Answers end the wait where nothing is judged.
  const bool ready = parts_.proposals->Await(judges ? 0 : kWaitMs);
  ASSAY_RETURN_IF_ERROR(HearJudges(ready || !judges ? 0 : kWaitForAnswersMs));
  ASSAY_RETURN_IF_ERROR(HearProposals());
  return GiveUpQuestions();
}

Result<void> SearchEngine::Run(StopToken stop) {
  const Span span("search");
  const auto ended = RunToEnd(stop);
  if (ended) return parts_.journal.Flush();
  // The error that ended it counts, not that its seconds cannot be kept.
  (void)parts_.journal.Live(Seconds());
  return ended;
}

Result<void> SearchEngine::RunToEnd(StopToken stop) {
  begin_ns_ = events_.now_ns();
  ASSAY_RETURN_IF_ERROR(Replay());
  while (true) {
    if (stop.stopped()) {
      ASSAY_RETURN_IF_ERROR(Stop());
      return Fail(ErrorKind::kInterrupted, "interrupted");
    }
    ASSAY_RETURN_IF_ERROR(HeedWishes());
    ASSAY_RETURN_IF_ERROR(Dispatch());
    if (!unanswered_.empty() &&
        (unanswered_.size() == in_hand_.size() || unanswered_.size() >= kUnansweredMax)) {
      ASSAY_RETURN_IF_ERROR(SettleUnanswered());
      continue;
    }
    if (in_hand_.empty()) {
      AddFinalists();
      ASSAY_RETURN_IF_ERROR(Dispatch());
      if (in_hand_.empty()) return {};
    }
    ASSAY_RETURN_IF_ERROR(WriteInTime());
    ASSAY_RETURN_IF_ERROR(ShowLife());
    ASSAY_RETURN_IF_ERROR(Hear());
    events_.progress(View());
  }
}

}  // namespace assay
