#include "score/fast_p.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "score/attempt.h"

namespace assay {
namespace {

FastP Count(std::span<const Verdict> verdicts, double p, int64_t asked, bool certified) {
  ASSAY_CHECK(p >= 0 && asked >= static_cast<int64_t>(verdicts.size()));
  const auto count = std::count_if(verdicts.begin(), verdicts.end(), [&](const Verdict& verdict) {
    return Qualifies(AttemptOf(verdict), p, certified);
  });
  return {p, certified, count, asked};
}

}  // namespace

FastP PlainFastP(std::span<const Verdict> verdicts, double p, int64_t asked) {
  return Count(verdicts, p, asked, false);
}

FastP CertifiedFastP(std::span<const Verdict> verdicts, double p, int64_t asked) {
  return Count(verdicts, p, asked, true);
}

std::string RenderFastP(const FastP& score) {
  return fmt::format("{}fast_{:g} = {:.0f}% ({} of {})", score.certified ? "certified " : "",
                     score.p, 100 * score.share(), score.count, score.asked);
}

}  // namespace assay
