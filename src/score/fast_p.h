// fast_p of candidates that were judged together: the share that is correct and more than p times
// as fast. score.h has the scores of whole sets, where the unit is the problem. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "model/verdict.h"

namespace assay {

struct FastP {
  double p = 1;
  bool certified = false;
  int64_t count = 0;  // verdicts that qualify
  int64_t asked = 0;

  double share() const {
    return asked > 0 ? static_cast<double>(count) / static_cast<double>(asked) : 0;
  }
};

// Counts as KernelBench's code does: correct, and the headline baseline's median ratio strictly
// over p; p = 0 counts every correct verdict. `asked`: how many verdicts there should be, at least
// verdicts.size(); missing ones count as not fast.
FastP PlainFastP(std::span<const Verdict> verdicts, double p, int64_t asked);

// Counts correct verdicts whose pairs gate 2 decides `faster` against p; p = 0 counts every correct
// verdict. Records without `certified_speedup` count if outcome and headline decision are `faster`
// against a threshold of at least p.
FastP CertifiedFastP(std::span<const Verdict> verdicts, double p, int64_t asked);

// Returns "fast_1 = 33% (1 of 3)" or "certified fast_1.5 = 0% (0 of 3)".
std::string RenderFastP(const FastP& score);

}  // namespace assay
