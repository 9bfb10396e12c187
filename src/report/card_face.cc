#include "report/card_face.h"

namespace assay {

Face FaceOf(Outcome outcome) {
  switch (outcome) {
    case Outcome::kFaster:
      return {"FASTER", "▲", "^", Tone::kGoodBadge, Tone::kGood};
    case Outcome::kSlower:
      return {"SLOWER", "▼", "v", Tone::kWarningBadge, Tone::kWarning};
    case Outcome::kTie:
      return {"TIE", "=", "=", Tone::kWarningBadge, Tone::kWarning};
    case Outcome::kNotFaster:
      return {"NOT FASTER", "=", "=", Tone::kWarningBadge, Tone::kWarning};
    case Outcome::kCorrect:
      return {"CORRECT", "✔", "+", Tone::kGoodBadge, Tone::kGood};
    case Outcome::kUnsettled:
      return {"UNSETTLED", "~", "~", Tone::kWarningBadge, Tone::kWarning};
    case Outcome::kWrong:
      return {"WRONG", "✘", "x", Tone::kBadBadge, Tone::kBad};
    case Outcome::kWeightsDiffer:
      return {"WEIGHTS DIFFER", "✘", "x", Tone::kBadBadge, Tone::kBad};
    case Outcome::kBuildFailed:
      return {"BUILD FAILED", "✘", "x", Tone::kBadBadge, Tone::kBad};
    case Outcome::kCrashed:
      return {"CRASHED", "✘", "x", Tone::kBadBadge, Tone::kBad};
    case Outcome::kTimedOut:
      return {"TIMED OUT", "✘", "x", Tone::kBadBadge, Tone::kBad};
    case Outcome::kOutOfMemory:
      return {"OUT OF MEMORY", "✘", "x", Tone::kBadBadge, Tone::kBad};
    case Outcome::kFoul:
      return {"FOUL", "!", "!", Tone::kBadBadge, Tone::kBad};
  }
  return {"UNKNOWN", "?", "?", Tone::kBadBadge, Tone::kBad};
}

}  // namespace assay
