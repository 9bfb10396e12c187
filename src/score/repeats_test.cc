#include "score/repeats.h"

#include <gmock/gmock.h>

#include "score/score_testing.h"

namespace assay {
namespace {

Verdict Again(const std::string& candidate, const std::string& time, double low, double high) {
  Verdict verdict = Judged("softmax", Outcome::kFaster, (low + high) / 2);
  verdict.candidate.hash = candidate;
  verdict.created = time;
  verdict.speed->baselines["eager"].ci_low = low;
  verdict.speed->baselines["eager"].ci_high = high;
  return verdict;
}

TEST(Repeats, CountSeparatedIntervalsOfOneSource) {
  const Repeats repeats =
      RepeatsOf({Again("a", "2026-01-03", 1.5, 1.6),  // over the one before
                 Again("a", "2026-01-01", 1.0, 1.2), Again("a", "2026-01-02", 1.1, 1.3),
                 Again("a", "2026-01-04", 1.0, 1.1),  // worse: no gain
                 Again("b", "2026-01-05", 3.0, 3.1)});
  EXPECT_EQ(repeats.pairs, 3);
  EXPECT_EQ(repeats.improved, 1);
}

TEST(Repeats, ComparesWhatCompares) {
  Verdict other_size = Again("a", "2026-01-02", 2, 3);
  other_size.problem.set = {{"ROWS", "7"}};
  Verdict other_machine = Again("a", "2026-01-03", 2, 3);
  other_machine.machine.cpu = "another";
  Verdict untimed = Again("a", "2026-01-04", 2, 3);
  untimed.speed.reset();
  const Verdict first = Again("a", "2026-01-01", 1, 1.1);
  const Repeats repeats = RepeatsOf({first, first, other_size, other_machine, untimed});
  EXPECT_EQ(repeats.pairs, 0);
}

}  // namespace
}  // namespace assay
