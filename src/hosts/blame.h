// Decides whose fault a host's trouble is. The candidate's is an outcome; the request's or the
// machine's is an error.
#pragma once

#include <string>
#include <string_view>

#include "hosts/host.h"
#include "model/verdict.h"

namespace assay {

// Returns what a C++ program said of the exception that ended it ("std::runtime_error: no room"),
// from its output; empty if it said nothing.
std::string UncaughtException(std::string_view output);

// Returns the trouble of a host that runs no candidate as an error, with its code. `what` begins
// its message.
Error TroubleAsError(const HostTrouble& trouble, std::string_view what);

// Returns true if a failure's text says that memory ran out, in the words of CUDA, PyTorch or one
// of their libraries. Foreign code may write such a text, so it decides nothing where outputs
// exist.
bool SaysOutOfMemory(std::string_view text);

// Returns what a failure's text says of memory, in the same words and in CUDA's for a context that
// it cannot make: kMemory, kDeviceMemory, kDeviceBusy or kNone.
ErrorCode CodeOfText(std::string_view text);

// Returns true for these three codes: a second attempt without other processes is worthwhile then.
bool MayLackMemory(ErrorCode code);

// Returns true if what a builder of extensions printed says so, or that a library could not start,
// beside other processes.
bool BuilderMayLackMemory(std::string_view text);

// Returns the code of its trouble: kNotHere, what its text says of memory, or kNone.
ErrorCode CodeOf(const HostTrouble& trouble);

// Makes it the verdict of a candidate that does not build or load. `line`: of its file; 0: none is
// known.
void FailToBuild(std::string message, int line, Verdict* verdict);

// Adds the end of what a candidate printed to its verdict's log; nothing where it printed nothing.
void AddPrinted(std::string_view output, Verdict* verdict);

// Puts the trouble of a candidate's host into the verdict as its outcome. The message of a crash
// contains `where`. Errors: trouble that is not the candidate's doing; kInterrupted.
Result<void> Blame(const HostTrouble& trouble, std::string_view where, StopToken stop,
                   Verdict* verdict);

}  // namespace assay
