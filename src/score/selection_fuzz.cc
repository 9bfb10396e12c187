// Scores a file of verdicts as `assay score` does. The first byte holds the options. Checks that
// shares are of the problems asked for, that nothing is counted twice, and that every figure makes
// sense.
#include <cmath>
#include <cstdint>

#include "base/check.h"
#include "model/verdict_outline.h"
#include "score/score.h"
#include "score/score_json.h"
#include "score/selection.h"

namespace assay {
namespace {

void CheckShare(const Share& share) {
  ASSAY_CHECK(share.count >= 0 && share.count <= share.asked);
  ASSAY_CHECK(share.low >= 0 && share.low <= share.value() && share.value() <= share.high &&
              share.high <= 1);
}

void CheckScore(const Score& score, size_t verdicts) {
  ASSAY_CHECK(score.judged <= score.asked);
  ASSAY_CHECK(score.attempts + score.set_aside.judged_again + score.set_aside.not_asked +
                  score.set_aside.against ==
              static_cast<int64_t>(verdicts));
  CheckShare(score.correct);
  for (const FastPRow& row : score.fast_p) {
    CheckShare(row.plain);
    CheckShare(row.certified);
  }
  ASSAY_CHECK(std::isfinite(score.mean_correct) && std::isfinite(score.mean_clamped));
  ASSAY_CHECK(!ScoreToJson(score, {}).empty());
}

}  // namespace
}  // namespace assay

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const VerdictTexts texts = SplitVerdicts(text, (data[0] & 1) != 0);
  std::vector<Verdict> verdicts;
  for (const std::string_view document : texts.documents) {
    ASSAY_CHECK(document.data() >= text.data() &&
                document.data() + document.size() <= text.data() + text.size());
    if (auto verdict = VerdictOutlineFromJson(document)) verdicts.push_back(std::move(*verdict));
  }
  SelectionRules rules;
  rules.any_machine = (data[0] & 2) != 0;
  rules.any_size = (data[0] & 4) != 0;
  if ((data[0] & 8) != 0) rules.asked_count = 2;
  if ((data[0] & 16) != 0) rules.asked = {{"softmax", 1, "one-pass"}, {"argmax", 1, ""}};
  const auto selection = SelectVerdicts(verdicts, rules);
  if (!selection) {
    ASSAY_CHECK(selection.error().kind == ErrorKind::kUsage && !selection.error().message.empty());
    return 0;
  }
  CheckScore(ComputeScore(*selection, {}), verdicts.size());
  return 0;
}
