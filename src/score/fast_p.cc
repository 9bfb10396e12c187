#include "score/fast_p.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace assay {
namespace {

bool IsCorrect(const Verdict& verdict) {
  switch (verdict.outcome) {
    case Outcome::kFaster:
    case Outcome::kSlower:
    case Outcome::kTie:
    case Outcome::kUnsettled:
      return verdict.correctness && verdict.correctness->passed;
    default:
      return false;
  }
}

// The baseline that decides the outcome; null where speed was never measured.
const BaselineResult* Headline(const Verdict& verdict) {
  if (!verdict.speed) return nullptr;
  const auto found = verdict.speed->baselines.find(verdict.speed->headline);
  return found != verdict.speed->baselines.end() ? &found->second : nullptr;
}

template <typename Qualifies>
FastP CountThose(std::span<const Verdict> verdicts, double p, int64_t asked, bool certified,
                 Qualifies qualifies) {
  ASSAY_CHECK(p >= 0 && asked >= static_cast<int64_t>(verdicts.size()));
  const auto count = std::count_if(verdicts.begin(), verdicts.end(), [&](const Verdict& verdict) {
    if (!IsCorrect(verdict)) return false;
    if (p == 0) return true;
    const BaselineResult* headline = Headline(verdict);
    return headline != nullptr && qualifies(verdict, *headline);
  });
  return {p, certified, count, asked};
}

}  // namespace

FastP PlainFastP(std::span<const Verdict> verdicts, double p, int64_t asked) {
  return CountThose(verdicts, p, asked, false, [p](const Verdict&, const BaselineResult& headline) {
    return headline.speedup > p;
  });
}

FastP CertifiedFastP(std::span<const Verdict> verdicts, double p, int64_t asked) {
  return CountThose(verdicts, p, asked, true,
                    [p](const Verdict& verdict, const BaselineResult& headline) {
                      return verdict.outcome == Outcome::kFaster && headline.decision == "faster" &&
                             verdict.speed->threshold >= p;
                    });
}

std::string RenderFastP(const FastP& score) {
  return fmt::format("{}fast_{:g} = {:.0f}% ({} of {})", score.certified ? "certified " : "",
                     score.p, 100 * score.share(), score.count, score.asked);
}

}  // namespace assay
