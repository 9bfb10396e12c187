// How a search is gone on with: a fresh strategy is told what the journal has.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/hash.h"
#include "search/engine.h"

namespace assay {
namespace {

Error StrangeJournal(const std::string& key) {
  return {ErrorKind::kUsage,
          fmt::format("the search cannot be gone on with: its step {} is not one that this version "
                      "of Assay would ask for; begin a new search",
                      key)};
}

}  // namespace

Result<void> SearchEngine::ReplayEvent(const JournalEvent& event, std::vector<Open>* open) {
  using Kind = JournalEvent::Kind;
  before_ns_ = std::max<int64_t>(before_ns_, std::llround(event.seconds * 1e9));
  if (event.kind == Kind::kAlive) return {};
  if (event.kind == Kind::kHeeded) {
    Accept(parts_.strategy.Steered(event.action, event.text));
    return {};
  }
  if (event.key.starts_with(kConfirmPrefix) && !entries_.contains(event.key)) {
    const Step* step = FindStep(event.key.substr(kConfirmPrefix.size()));
    if (step == nullptr) return std::unexpected(StrangeJournal(event.key));
    Accept({ConfirmationOf(*step)});
  }
  const auto found = entries_.find(event.key);
  if (found == entries_.end()) return std::unexpected(StrangeJournal(event.key));
  Entry& entry = found->second;
  const auto earlier = std::find_if(open->begin(), open->end(),
                                    [&](const Open& each) { return each.key == event.key; });
  if (event.kind == Kind::kIntent) {
    if (entry.step.kind != StepKind::kPropose && event.source_hash != Sha256Hex(entry.step.source))
      return std::unexpected(StrangeJournal(event.key));
    // An archive from before steps were recorded as lost.
    if (earlier != open->end()) {
      ledger_.Book(earlier->reserved);
      open->erase(earlier);
    }
    open->push_back({event.key, event.cost, event.judged_at_once});
    return {};
  }
  if (earlier != open->end()) open->erase(earlier);
  if (event.kind == Kind::kReleased || event.kind == Kind::kLost) {
    ledger_.Book(event.cost);
  } else {
    if (entry.state == Entry::State::kDone) return std::unexpected(StrangeJournal(event.key));
    ledger_.Book(event.cost);
    StepResult result = event.result;
    if (!result.duplicate_of.empty()) {
      const auto first = verdicts_.find(result.duplicate_of);
      if (first == verdicts_.end()) return std::unexpected(StrangeJournal(event.key));
      result = first->second;
      result.duplicate_of = event.result.duplicate_of;
    }
    std::erase(waiting_, event.key);
    Tell(entry, result);
  }
  return {};
}

Result<void> SearchEngine::Replay() {
  Accept(parts_.strategy.Begin());
  std::vector<Open> open;
  for (const JournalEvent& event : parts_.journal.events())
    ASSAY_RETURN_IF_ERROR(ReplayEvent(event, &open));
  return BookLost(open);
}

Result<void> SearchEngine::BookLost(const std::vector<Open>& open) {
  std::vector<const Step*> steps;
  std::vector<Spending> costs;
  int64_t judged = 0;
  for (const Open& each : open) {
    const Step& step = entries_.at(each.key).step;
    const bool in_flight = step.kind == StepKind::kPropose || judged < each.judged_at_once;
    if (step.kind != StepKind::kPropose) ++judged;
    steps.push_back(&step);
    costs.push_back(in_flight ? each.reserved : Spending());
    ledger_.Book(costs.back());
  }
  ASSAY_RETURN_IF_ERROR(parts_.journal.Lose(steps, costs));
  if (!steps.empty()) events_.at("after loss");
  return {};
}

}  // namespace assay
