// The lesson of a verdict in the archive for a search's next prompt.
#pragma once

#include <string>

#include "archive/store.h"
#include "base/result.h"

namespace assay {

// Compiles a native candidate once more, to read its machine code. Errors: the record is no verdict
// (kUsage), or its bytes cannot be read (kEnvironment).
Result<std::string> FeedbackOfRecord(const Record& record, Store& store);

}  // namespace assay
