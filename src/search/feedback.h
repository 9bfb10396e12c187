// The lesson of a verdict: the text from which the next prompt on this candidate is made. Pure.
//
// It shows no seed, nothing that the candidate printed, and of values at most one wrong element, to
// three digits; docs/feedback.md says why that is safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/machine_profile.h"
#include "model/verdict.h"
#include "toolchain/native_loop.h"

namespace assay {

struct FeedbackSubject {
  const Verdict& verdict;
  std::string_view source;  // of the candidate
  // Of a native candidate for the processor (builders/native_code.h); null: not known.
  const NativeCode* code = nullptr;
  const MachineProfile* machine = nullptr;  // of `assay doctor`; null: not known
};

// A paragraph or a list on one matter.
struct FeedbackPart {
  // "outcome", "errors", "mismatch", "speed", "bottleneck", "probes", "counters", "bound",
  // "code"
  std::string name;
  std::string text;  // without a line break at its end; never empty
};

// Returns the parts that there is something to say about, the most useful first.
std::vector<FeedbackPart> FeedbackOf(const FeedbackSubject& subject);
// The parts as paragraphs.
std::string FeedbackText(const std::vector<FeedbackPart>& parts);

// Names the most likely limit of a native candidate's speed in one sentence with its numbers. Empty
// where nothing stands out, and at 85% of the measured peak or more.
std::string NativeBottleneck(const Verdict& verdict, const NativeCode& code);

}  // namespace assay
