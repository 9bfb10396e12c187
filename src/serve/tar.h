// A folder's files as one tar, plain or compressed by gzip. What is read may be anybody's: sizes,
// counts and names are bounded, and links are refused.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay {

struct TarFile {
  std::string path;  // "versions/v1.cpp"
  std::string content;
};

struct TarLimits {
  size_t files_max = 1000;              // folders count, too
  size_t bytes_max = size_t{32} << 20;  // of all contents, uncompressed
  size_t path_bytes_max = 200;
  int folders_max = 6;  // of a path
};

enum class TarForm { kPlain, kGzip };

class TarLibrary {
 public:
  // `library`: lib/assay/tar.so. Errors (kEnvironment): it, or libarchive, is not there.
  static Result<TarLibrary> Open(const std::string& library);

  // Returns the files, by path. A path has letters, digits, "-", "_", "." and "/" alone; it leads
  // nowhere else, and there is one file of it. Errors (kUsage) name the entry.
  Result<std::vector<TarFile>> Read(std::string_view bytes, const TarLimits& limits) const;
  // The same files give the same bytes. Errors: kEnvironment.
  Result<std::string> Write(std::span<const TarFile> files, TarForm form) const;

 private:
  using ReadFunction = Result<std::vector<TarFile>>(std::string_view, const TarLimits&);
  using WriteFunction = Result<std::string>(std::span<const TarFile>, TarForm);
  TarLibrary(ReadFunction* read, WriteFunction* write) : read_(read), write_(write) {}

  ReadFunction* read_;
  WriteFunction* write_;
};

}  // namespace assay
