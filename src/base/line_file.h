// A file of lines that grows: one process at a time adds to it, and a line that was added survives
// the end of that process.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay {

// Says of a last line without a line break, which a killed process may have left, whether nothing
// of it is missing.
using IsWholeLine = std::function<bool(std::string_view)>;

// Gives `take` each line of a text, without its line break; passes over a torn last line. An error
// of `take` ends it, and gets the place: "`path` line 3: ...: mend or remove the line".
Result<void> ForEachLine(std::string_view text, const std::string& path, const IsWholeLine& whole,
                         const std::function<Result<void>(std::string_view)>& take);

class LineFile {
 public:
  // Makes the file and its folder where they are missing. A torn last line is cut off. Errors
  // (kEnvironment): another process has the file ("another `user` adds to it"), or it cannot be
  // opened, read or written.
  static Result<LineFile> Open(const std::string& path, std::string_view user,
                               const IsWholeLine& whole);

  const std::string& path() const { return path_; }
  bool was_torn() const { return was_torn_; }

  // Reads all lines, each with its line break.
  Result<std::string> Read() const;
  // Adds a line, given without its line break, or several with line breaks between them. They are
  // on disk when this returns. After an error the file ends as it did before. Errors: kEnvironment.
  Result<void> Append(std::string_view lines);

 private:
  LineFile(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  std::unexpected<Error> Failed(std::string_view what) const;
  Result<void> Write(std::string_view text);

  std::string path_;
  UniqueFd fd_;
  bool was_torn_ = false;
};

}  // namespace assay
