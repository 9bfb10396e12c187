#include "propose/events.h"

namespace assay {

std::vector<ServerEvent> ParseServerEvents(std::string_view text) {
  std::vector<ServerEvent> events;
  ServerEvent event;
  bool has_data = false;
  const auto finish = [&] {
    if (has_data) events.push_back(std::move(event));
    event = {};
    has_data = false;
  };
  while (!text.empty()) {
    const size_t end = text.find_first_of("\r\n");
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end);
    text.remove_prefix(text.starts_with("\r\n") ? 2 : text.empty() ? 0 : 1);
    if (line.empty()) {
      finish();
      continue;
    }
    const size_t colon = line.find(':');
    const std::string_view field = line.substr(0, colon);
    std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);
    if (field == "event") event.name = value;
    if (field == "data") {
      if (has_data) event.data += '\n';
      event.data += value;
      has_data = true;
    }
  }
  finish();
  return events;
}

}  // namespace assay
