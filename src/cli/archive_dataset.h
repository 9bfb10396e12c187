// Datasets for training, written from an archive.
#pragma once

#include <cstdint>
#include <cstdio>

#include "archive/store.h"
#include "base/result.h"
#include "cli/archive_command.h"

namespace assay {

inline constexpr int64_t kLeftOutToldMax = 20;

struct Written {
  int64_t records = 0;
  int64_t left_out = 0;  // they cannot be read, or their bytes were changed

  // Tells so of the first ones.
  void LeaveOut(const std::string& what);
};

// Tells in one notice how many samples lack something, and what.
Result<Written> WriteDataset(Store& store, const ArchiveExportOptions& options, std::FILE* file);

}  // namespace assay
