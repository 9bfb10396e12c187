// Whose fault a host's trouble is: the candidate's, and then it is an outcome, or the request's or
// the machine's, and then it is an error.
#pragma once

#include <string_view>

#include "hosts/host.h"
#include "model/verdict.h"

namespace assay {

// Trouble of a host that runs no candidate.
Error TroubleAsError(const HostTrouble& trouble, std::string_view what);

// Whether a failure's text is that of memory that was not to be had: CUDA's, PyTorch's or a
// library's of theirs, which takes its own. Foreign code may write such a text: it decides
// nothing where something was given.
bool SaysOutOfMemory(std::string_view text);

// The same, or CUDA's words for a context that was not to be had, seen once, where a candidate took
// the memory as other processes started: worth a second attempt with nobody beside it.
bool MayLackMemory(std::string_view text);

// A candidate's host's trouble as the verdict's outcome. `where` stands in the message of a crash.
// Errors: what is not the candidate's doing; kInterrupted.
Result<void> Blame(const HostTrouble& trouble, std::string_view where, StopToken stop,
                   Verdict* verdict);

}  // namespace assay
