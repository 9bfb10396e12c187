// A search's knowledge of its candidates: outcomes, the best so far, the result. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "search/step.h"

namespace assay {

struct SearchNode {
  std::string key;
  Lineage lineage;
  std::optional<Outcome> outcome;  // nullopt: an error stands in the verdict's place
  Ratio ratio;
  std::string verdict_id;
  std::string duplicate_of;
  bool known = false;  // an earlier search judged it
};

struct CurvePoint {
  int64_t evaluations = 0;
  double ratio = 0;  // the best so far
};

class OutcomeTable {
 public:
  void Judged(const Step& step, const StepResult& result);
  // A question, with its answer or the error in its place.
  void Asked(const StepResult& result);
  void Confirmed(const Step& step, const StepResult& result);

  const std::vector<SearchNode>& nodes() const { return nodes_; }
  // Candidates whose verdicts are those of earlier searches.
  int64_t known() const { return known_; }
  size_t answers() const { return answers_; }
  size_t unanswered() const { return unanswered_; }
  // Questions since the last answer.
  size_t unanswered_in_a_row() const { return unanswered_in_a_row_; }
  const SearchNode* Find(const std::string& key) const;
  // By the first look: the correct one with the greatest ratio.
  const SearchNode* best() const { return Find(best_); }
  // The speedup that a candidate must be able to exceed to be the best: the greatest lower end of
  // an interval of those that were `faster`, to three digits after the point; 0: there is none.
  double Bound() const;
  const std::vector<CurvePoint>& curve() const { return curve_; }
  // "faster" -> 12; errors are "error".
  const std::map<std::string, int64_t>& counts() const { return counts_; }
  // Of all candidates that a second look found faster, the one with the greatest ratio there.
  const SearchNode* confirmed() const;
  const std::map<std::string, SearchNode>& confirmations() const { return confirmations_; }
  // Keys of the candidates to judge again now, those with the greatest lower ends of their
  // intervals first: those that were `faster`, then those that may be, until `count` were looked
  // at, and further ones while none of these is confirmed.
  std::vector<std::string> Finalists(size_t count) const;

 private:
  std::vector<SearchNode> nodes_;
  int64_t known_ = 0;
  size_t answers_ = 0, unanswered_ = 0, unanswered_in_a_row_ = 0;
  std::map<std::string, size_t> places_;
  std::string best_;
  std::vector<CurvePoint> curve_;
  std::map<std::string, int64_t> counts_;
  std::map<std::string, SearchNode> confirmations_;  // by the key of the candidate's first look
};

}  // namespace assay
