#include "mcp/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace assay {

std::optional<LineReader::Piece> LineReader::Whole() {
  for (;;) {
    const size_t end = text_.find('\n', searched_);
    if (end == std::string::npos) break;
    std::string line = text_.substr(0, end);
    text_.erase(0, end + 1);
    searched_ = 0;
    if (std::exchange(skips_, false) || line.size() > line_bytes_max_)
      return Piece{Piece::Kind::kTooLong, ""};
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) return Piece{Piece::Kind::kLine, std::move(line)};
  }
  searched_ = text_.size();
  if (text_.size() > line_bytes_max_) {
    skips_ = true;
    text_.clear();
    searched_ = 0;
  }
  return std::nullopt;
}

std::optional<LineReader::Piece> LineReader::Next(int timeout_ms) {
  if (auto whole = Whole()) return whole;
  if (ended_) return Piece{Piece::Kind::kEnd, ""};
  pollfd ready{fd_, POLLIN, 0};
  if (::poll(&ready, 1, timeout_ms) <= 0) return std::nullopt;
  char buffer[1 << 16];
  const ssize_t size = ::read(fd_, buffer, sizeof buffer);
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return std::nullopt;
  if (size > 0) {
    text_.append(buffer, static_cast<size_t>(size));
  } else {
    ended_ = true;
    if (!text_.empty() || skips_) text_ += '\n';
  }
  if (auto whole = Whole()) return whole;
  return ended_ ? std::optional(Piece{Piece::Kind::kEnd, ""}) : std::nullopt;
}

}  // namespace assay
