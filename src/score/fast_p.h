// fast_p of candidates that were judged side by side: the share that is correct and more than p
// times as fast. Scores of whole sets, a problem at a time, are in score.h. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "model/verdict.h"

namespace assay {

struct FastP {
  double p = 1;
  bool certified = false;
  int64_t count = 0;  // of verdicts that qualify
  int64_t asked = 0;

  double share() const {
    return asked > 0 ? static_cast<double>(count) / static_cast<double>(asked) : 0;
  }
};

// Plain: as KernelBench's code counts: correct, and the headline baseline's median ratio strictly
// over p; p of 0 counts every correct verdict. `asked` is how many verdicts there should be: what
// is missing counts as not fast. At least verdicts.size().
FastP PlainFastP(std::span<const Verdict> verdicts, double p, int64_t asked);

// Certified: correct, and the pairs of gate 2 are decided `faster` against p; p of 0 counts every
// correct verdict. Records older than `certified_speedup` count where outcome and headline decision
// are `faster` against a threshold of at least p.
FastP CertifiedFastP(std::span<const Verdict> verdicts, double p, int64_t asked);

// "fast_1 = 33% (1 of 3)"; "certified fast_1.5 = 0% (0 of 3)".
std::string RenderFastP(const FastP& score);

}  // namespace assay
