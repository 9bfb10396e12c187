// Server-sent events (HTML standard, 9.2). Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct ServerEvent {
  std::string name;  // empty: not named
  std::string data;
};
// Returns the events of a stream so far. One that its end cut off, which has no empty line after
// it, counts too, as it is.
std::vector<ServerEvent> ParseServerEvents(std::string_view text);

}  // namespace assay
