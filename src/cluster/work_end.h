// An error in the place of a verdict, as the queue keeps it.
#pragma once

#include <string>

#include "base/result.h"
#include "queue/work_queue.h"

namespace assay {

// Returns the text of WorkEnd::error.
std::string ErrorText(const Error& error);
// Of a work that ended without a verdict. Its kind is kUsage, kUnjudged or kEnvironment.
Error ErrorOfEnd(const EndedWork& ended);
// The same where a later call tries it again: another node may have what this one lacks, so
// kUnjudged becomes kEnvironment.
Error ErrorForAnotherNode(const EndedWork& ended);

}  // namespace assay
