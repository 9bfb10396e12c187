// Copies an archive into another, record by record, as it stands.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "archive/store.h"

namespace assay {

struct CopyReport {
  int64_t known = 0;  // records that were there before
  int64_t copied = 0;
  std::string head;  // hash of the last record of both
};

// Goes on where an earlier copy ended; checks every record and all bytes on the way. `progress`
// hears of the records done. Errors: the archives differ in a record, or `to` has more than `from`
// (kUsage); a record of `from` was changed or cannot be read (kEnvironment). Whatever was copied
// before an error stays.
Result<CopyReport> CopyArchive(Store& from, Store& to,
                               const std::function<void(int64_t)>& progress = nullptr);

}  // namespace assay
