// Files of a server's that others on its machine may not read, whatever its folder's mode is.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"

namespace assay {

// While it lives, others may read nothing that this process makes. A file of SQLite's that was
// there before becomes private, too, with its log. One thread at a time.
class PrivateFiles {
 public:
  explicit PrivateFiles(const std::string& sqlite_path);
  PrivateFiles(const PrivateFiles&) = delete;
  PrivateFiles& operator=(const PrivateFiles&) = delete;
  ~PrivateFiles();

 private:
  mode_t before_;
};

// Writes a file of mode 0600 in place of one that may be there. Errors: kEnvironment.
Result<void> WritePrivateFile(const std::string& path, const std::string& content);

}  // namespace assay
