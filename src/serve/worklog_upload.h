// A worklog as it came to the server: the folder's files, read and checked as `assay worklog check`
// does. The server is the outside anchor of its facts: those that were there once must stay.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "serve/tar.h"
#include "worklog/check.h"
#include "worklog/worklog.h"

namespace assay {

inline constexpr size_t kUploadBytesMax = size_t{2} << 20;  // as it is sent
inline constexpr TarLimits kUploadLimits{.files_max = 1000, .bytes_max = size_t{32} << 20};

// The files that make a worklog, out of a folder's. A folder that holds all of them is stripped.
// Left out are others, such as a rubric or marks of the sender's own. Errors (kUsage): there is no
// worklog.toml, or nothing else.
Result<std::vector<TarFile>> FilesOfWorklog(std::vector<TarFile> files);
// The same, out of a worklog's folder on disk; others are not looked at. Errors: kUsage.
Result<std::vector<TarFile>> FilesOfWorklogFolder(const std::string& folder);

struct UploadedWorklog {
  Worklog worklog;
  std::vector<std::string> facts;  // hashes of their records, in order
  std::string rendered;            // worklog.md as facts and words say it
};
// Errors (kUsage): facts or words cannot be read, or were changed.
Result<UploadedWorklog> ReadUploadedWorklog(std::span<const TarFile> files);

// The server's own knowledge of a worklog.
struct UploadHistory {
  std::vector<std::string> facts;  // hashes of all that ever came with it
  bool of_others = false;          // another account sent the same worklog
};
std::vector<Finding> CheckUploadedWorklog(const UploadedWorklog& uploaded,
                                          const UploadHistory& history);

}  // namespace assay
