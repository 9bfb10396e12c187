// A record with what it is about, as one line of JSON (docs/archive.schema.json).
#pragma once

#include <string>

#include "archive/store.h"

namespace assay {

// Without a line break at its end. Errors: the store lacks the record's bytes, or they were
// changed.
Result<std::string> RecordToJson(const Record& record, Store& store);

}  // namespace assay
