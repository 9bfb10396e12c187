// Reads lines from a file descriptor without ever holding more than one line of the largest size.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace assay {

class LineReader {
 public:
  // `fd` stays the caller's.
  LineReader(int fd, size_t line_bytes_max) : fd_(fd), line_bytes_max_(line_bytes_max) {}

  struct Piece {
    enum class Kind { kLine, kTooLong, kEnd };
    Kind kind = Kind::kLine;
    std::string line;  // without its end; of kLine
  };
  // Returns the next line; kTooLong in the place of one with more bytes, which is skipped; kEnd
  // once the input has ended, after a last line without an end. nullopt: nothing came in time, or a
  // signal did. Empty lines are left out.
  std::optional<Piece> Next(int timeout_ms);

 private:
  // A line that was read whole.
  std::optional<Piece> Whole();

  const int fd_;
  const size_t line_bytes_max_;
  std::string text_;     // read, not returned
  size_t searched_ = 0;  // of it, without an end of line
  bool skips_ = false;   // inside a line that is too long
  bool ended_ = false;
};

}  // namespace assay
