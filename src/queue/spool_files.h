// Files of a spool queue: each change is one rename or one link, which a shared file system does
// whole or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/result.h"

namespace assay {

class SpoolFiles {
 public:
  // Makes the folder a queue if it is empty or missing. Errors: kUsage (it holds something else, or
  // a queue of another version), kEnvironment.
  static Result<SpoolFiles> Open(const std::filesystem::path& place);

  std::filesystem::path Path(const char* kind, const std::string& name) const {
    return place_ / kind / name;
  }
  // Makes a file whole; false: one of this name is there, and stays.
  Result<bool> Make(const std::filesystem::path& path, std::string_view content,
                    Durability durability) const;
  // False: `from` is not there. NFS may do a rename and lose the answer: then `to` is looked at.
  static Result<bool> Move(const std::filesystem::path& from, const std::filesystem::path& to);
  static bool Has(const std::filesystem::path& path);
  static void Remove(const std::filesystem::path& path);
  // Names in a folder, sorted; none where it is missing.
  static std::vector<std::string> Names(const std::filesystem::path& folder);
  // Seconds between the last change of a file and now, both by the file system's clock; -1:
  // unknown.
  double AgeOf(const std::filesystem::path& path) const;

 private:
  explicit SpoolFiles(std::filesystem::path place) : place_(std::move(place)) {}
  // A name in tmp/ that no other process uses.
  std::filesystem::path Temporary() const;

  std::filesystem::path place_;
};

}  // namespace assay
