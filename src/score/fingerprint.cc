#include "score/fingerprint.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

#include "score/attempt.h"

namespace assay {
namespace {

struct Phrase {
  std::string_view in_hint;
  std::string_view kind;
};

// Phrases of rules/hint.cc, rules/wrong_pattern.cc and correctness/; the first that a hint holds
// gives its kind. src/report/hint_kinds_test.cc shows that they are the judge's words.
constexpr std::array kUnusual{
    Phrase{"large offsets", "large offsets alone"},
    Phrase{"magnitudes span", "wide range alone"},
    Phrase{"tiny values", "tiny values alone"},
    Phrase{"huge values", "huge values alone"},
    Phrase{"zeros of both signs", "signed zeros alone"},
    Phrase{"values are equal", "ties alone"},
    Phrase{"small integers", "small integers alone"},
    Phrase{"inputs of 0 and 1", "0 and 1 alone"},
    Phrase{"one large value", "outliers alone"},
    Phrase{"NaN or infinity", "NaN or infinity alone"},
};
constexpr std::array kPatterns{
    Phrase{"right at the size that was asked for", "another size"},
    Phrase{"it wrote", "wrote out of bounds"},
    Phrase{"differs from run to run", "differs from run to run"},
    Phrase{"the first call was right", "a later call"},
    Phrase{"never written", "not written"},
    Phrase{"copied through", "input copied through"},
    Phrase{"it leaves", "input not changed in place"},
    Phrase{"all NaN", "NaN or infinity"},
    Phrase{"NaN where they should not", "NaN or infinity"},
    Phrase{"infinite where they should not", "NaN or infinity"},
    Phrase{"where NaN or an infinity belongs", "NaN or infinity"},
    Phrase{"all zeros", "one value everywhere"},
    Phrase{"the same value everywhere", "one value everywhere"},
    Phrase{"zero where they should not", "zeros"},
    Phrase{"shifted by one", "misplaced elements"},
    Phrase{"transposed", "misplaced elements"},
    Phrase{"every ", "part of the output"},
    Phrase{"only ", "part of the output"},
    Phrase{"sign is flipped", "factor, constant or sign"},
    Phrase{"off by a factor", "factor, constant or sign"},
    Phrase{"off by a constant", "factor, constant or sign"},
    Phrase{"errors are as large as", "precision"},
    Phrase{"accuracy of the true values", "precision"},
    Phrase{"larger than this precision explains", "precision"},
    Phrase{"scattered elements", "scattered elements"},
    Phrase{" indices ", "indices"},
    Phrase{"selects", "indices"},
};

template <size_t N>
std::string KindIn(std::string_view hint, const std::array<Phrase, N>& phrases,
                   std::string_view otherwise) {
  for (const Phrase& phrase : phrases)
    if (hint.find(phrase.in_hint) != std::string_view::npos) return std::string(phrase.kind);
  return std::string(otherwise);
}

std::string KindOfUnsettled(const Verdict& verdict) {
  if (!verdict.speed) return {};
  const auto headline = verdict.speed->baselines.find(verdict.speed->headline);
  if (headline == verdict.speed->baselines.end() || !headline->second.why_unsettled) return {};
  return headline->second.why_unsettled->cause;
}

}  // namespace

std::string KindOf(const Verdict& verdict) {
  if (RightWithPreparedWeights(verdict)) return "prepared weights";
  if (verdict.outcome == Outcome::kFoul) return verdict.foul ? verdict.foul->rule : "";
  if (verdict.outcome == Outcome::kUnsettled) return KindOfUnsettled(verdict);
  if (verdict.outcome != Outcome::kWrong || !verdict.correctness) return {};
  const std::string& hint = verdict.correctness->hint;
  if (RightOnOrdinaryValues(verdict)) return KindIn(hint, kUnusual, "unusual values alone");
  return KindIn(hint, kPatterns, "other values");
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
