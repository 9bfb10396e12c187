// Whole-file reads and writes with bounds, and folders that remove themselves.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay {

// Reads a regular file of at most `size_bytes_max` bytes. Errors (kUsage): missing, a folder,
// unreadable, larger.
Result<std::string> ReadFile(const std::filesystem::path& path, size_t size_bytes_max);

// kFleeting: not flushed to disk, so that a build need not wait. After a power failure the file may
// be empty: use it for content that can be made again and is checked when it is read.
enum class Durability { kLasting, kFleeting };

// Writes a temporary file beside `path`, flushes it to disk (kLasting), then renames it into place:
// a reader sees the old content or the new, never a part. Creates the folder. Errors (kEnvironment)
// leave `path` as it was.
Result<void> WriteFileAtomically(const std::filesystem::path& path, std::string_view content,
                                 Durability durability = Durability::kLasting);

// Returns a file in memory with this content; without a descriptor if there is no memory for it.
UniqueFd MemoryFile(const std::string& content);

// A fresh private folder (mode 0700) under $TMPDIR or /tmp, removed with its content on
// destruction.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> Create();
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept;
  ~TemporaryFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

// $XDG_CACHE_HOME/assay or ~/.cache/assay; for state $XDG_STATE_HOME or ~/.local/state; for data
// $XDG_DATA_HOME or ~/.local/share.
std::filesystem::path CacheFolder();
std::filesystem::path StateFolder();
std::filesystem::path DataFolder();

}  // namespace assay
