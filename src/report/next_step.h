// The next step after a verdict: the one command that most people will want.
#pragma once

#include <string>

#include "model/verdict.h"

namespace assay {

struct NextStep {
  std::string advice;   // what to do before the command, without a full stop; may be empty
  std::string command;  // ready for a shell; empty: the advice alone
};
// `saved`: its id is known to `assay explain`. `here`: it was judged on a machine of the reader's.
NextStep NextStepAfter(const Verdict& verdict, bool saved = true, bool here = true);

// `assay judge ...` for the same question again, with `candidate` in its place and `extra` flags at
// the end.
std::string JudgeCommand(const Verdict& verdict, const std::string& candidate,
                         const std::string& extra);

}  // namespace assay
