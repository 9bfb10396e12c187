#include "http/event_stream.h"

#include <utility>

namespace assay {

void EventStream::TakeLine(std::string_view line) {
  const size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value =
      colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "data") {
    if (std::exchange(has_data_, true)) data_ += '\n';
    data_ += value;
  } else if (field == "event") {
    name_ = value;
  } else if (field == "id" && value.find('\0') == std::string_view::npos) {
    id_ = value;
  }
}

bool EventStream::Take(std::string_view bytes,
                       const std::function<bool(const StreamedEvent&)>& take) {
  for (const char c : bytes) {
    const bool follows_return = std::exchange(was_return_, c == '\r');
    if (c == '\n' && follows_return) continue;
    if (c != '\n' && c != '\r') {
      line_ += c;
      if (line_.size() + data_.size() > event_bytes_max) return false;
      continue;
    }
    const std::string line = std::exchange(line_, {});
    if (!line.empty()) {
      TakeLine(line);
      continue;
    }
    last_id_ = id_;
    StreamedEvent event{id_, std::exchange(name_, {}), std::exchange(data_, {})};
    if (std::exchange(has_data_, false) && !take(event)) return false;
  }
  return true;
}

}  // namespace assay
