#include "score/fingerprint.h"

#include <algorithm>
#include <tuple>

#include "score/attempt.h"

namespace assay {
namespace {

std::string KindOfUnsettled(const Verdict& verdict) {
  if (!verdict.speed) return {};
  const auto headline = verdict.speed->baselines.find(verdict.speed->headline);
  if (headline == verdict.speed->baselines.end() || !headline->second.why_unsettled) return {};
  return std::string(UnsettledCauseName(headline->second.why_unsettled->cause));
}

}  // namespace

std::string KindOf(const Verdict& verdict) {
  if (RightWithPreparedWeights(verdict)) return "prepared weights";
  if (verdict.outcome == Outcome::kFoul) return verdict.foul ? verdict.foul->rule : "";
  if (verdict.outcome == Outcome::kUnsettled) return KindOfUnsettled(verdict);
  if (verdict.outcome != Outcome::kWrong || !verdict.correctness) return {};
  const Mistake mistake = verdict.correctness->mistake;
  return std::string(MistakeName(mistake == Mistake::kNone ? Mistake::kOther : mistake));
}

void SortRows(std::vector<FingerprintRow>* rows) {
  const auto place = [](const FingerprintRow& row) {
    return std::tuple(FactsOf(row.outcome).reached, -static_cast<int>(row.outcome), -row.count);
  };
  std::sort(rows->begin(), rows->end(), [&](const auto& one, const auto& other) {
    return std::tuple_cat(place(one), std::tie(one.kind)) <
           std::tuple_cat(place(other), std::tie(other.kind));
  });
}

}  // namespace assay
