// Datasets for training, written from an archive.
#pragma once

#include <cstdint>
#include <cstdio>

#include "archive/store.h"
#include "base/result.h"
#include "cli/archive_command.h"

namespace assay {

struct Written {
  int64_t records = 0;
  int64_t left_out = 0;  // their bytes are missing or were changed: a notice says so
};

// Tells in one notice how many samples lack something, and what.
Result<Written> WriteDataset(Store& store, const ArchiveExportOptions& options, std::FILE* file);

}  // namespace assay
