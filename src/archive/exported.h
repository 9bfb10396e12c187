// Reads what `assay archive export` wrote, so that the records can go into another archive. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "archive/record.h"
#include "base/result.h"

namespace assay {

struct ExportedRecord {
  NewRecord record;
  std::string time;  // ISO 8601, UTC
};

// All records of a whole archive, oldest first. Errors (kUsage) name the file and the line: it is
// no such record, or it has changed since it was written, by its hashes.
Result<std::vector<ExportedRecord>> ParseExportedRecords(std::string_view text,
                                                         const std::string& path);

}  // namespace assay
