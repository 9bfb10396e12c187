#include "search/outcome_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/outcome.h"

namespace assay {
namespace {

SearchNode NodeOf(const Step& step, const StepResult& result) {
  SearchNode node{step.key, step.lineage,        std::nullopt,         {},
                  "",       result.duplicate_of, !result.known.empty()};
  if (!result.verdict) return node;
  node.outcome = result.verdict->outcome;
  node.ratio = RatioOf(*result.verdict);
  node.verdict_id = result.verdict->id;
  return node;
}

// The first look had little time: what it left open may be decided by the second. What cannot
// exceed the best may exceed the reference.
bool MayBeFaster(const SearchNode& node) {
  return node.outcome == Outcome::kFaster ||
         (node.outcome == Outcome::kUnsettled && node.ratio.value > 1) ||
         (node.outcome == Outcome::kNotFaster && node.ratio.low > 1);
}

// A great ratio with a wide interval is a lucky one.
double SureRatio(const Ratio& ratio) { return std::isfinite(ratio.low) ? ratio.low : 0; }

}  // namespace

void OutcomeTable::Judged(const Step& step, const StepResult& result) {
  SearchNode node = NodeOf(step, result);
  const bool duplicate = !node.duplicate_of.empty();
  ++counts_[duplicate      ? "duplicate"
            : node.outcome ? std::string(OutcomeName(*node.outcome))
                           : "error"];
  const SearchNode* before = best();
  if (!duplicate && node.ratio.value > (before == nullptr ? 0 : before->ratio.value))
    best_ = step.key;
  places_[step.key] = nodes_.size();
  const bool known = node.known;
  known_ += known ? 1 : 0;
  nodes_.push_back(std::move(node));
  if (duplicate) return;
  const int64_t evaluations = (curve_.empty() ? 0 : curve_.back().evaluations) + (known ? 0 : 1);
  curve_.push_back({evaluations, best() == nullptr ? 0 : best()->ratio.value});
}

void OutcomeTable::Asked(const StepResult& result) {
  ++(result.answer ? answers_ : unanswered_);
  unanswered_in_a_row_ = result.answer ? 0 : unanswered_in_a_row_ + 1;
}

double OutcomeTable::Bound() const {
  constexpr double kSteps = 1000;
  double bound = 0;
  for (const SearchNode& node : nodes_)
    if (node.outcome == Outcome::kFaster) bound = std::max(bound, SureRatio(node.ratio));
  return std::floor(bound * kSteps) / kSteps;
}

void OutcomeTable::Confirmed(const Step& step, const StepResult& result) {
  confirmations_[step.lineage.parents.front()] = NodeOf(step, result);
}

const SearchNode* OutcomeTable::Find(const std::string& key) const {
  const auto found = places_.find(key);
  return found == places_.end() ? nullptr : &nodes_[found->second];
}

const SearchNode* OutcomeTable::confirmed() const {
  const SearchNode* best = nullptr;
  for (const auto& [key, node] : confirmations_)
    if (node.outcome == Outcome::kFaster &&
        (best == nullptr || node.ratio.value > best->ratio.value))
      best = &node;
  return best;
}

std::vector<std::string> OutcomeTable::Finalists(size_t count) const {
  std::vector<const SearchNode*> order;
  for (const SearchNode& node : nodes_)
    if (MayBeFaster(node) && node.duplicate_of.empty()) order.push_back(&node);
  std::stable_sort(order.begin(), order.end(), [](const SearchNode* a, const SearchNode* b) {
    return std::pair(a->outcome == Outcome::kFaster, SureRatio(a->ratio)) >
           std::pair(b->outcome == Outcome::kFaster, SureRatio(b->ratio));
  });
  std::vector<std::string> keys;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i >= count && (confirmed() != nullptr || !keys.empty())) break;
    if (!confirmations_.contains(order[i]->key)) keys.push_back(order[i]->key);
  }
  return keys;
}

}  // namespace assay
