// Reads a stream of server-sent events (HTML standard, 9.2) as it comes. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace assay {

struct StreamedEvent {
  std::string id;  // the last one that the stream has told
  std::string name;
  std::string data;
};

class EventStream {
 public:
  // Takes the next bytes; gives `take` each event that is whole, until it returns false. Returns
  // false then, and if an event is larger than `event_bytes_max`: read no more.
  bool Take(std::string_view bytes, const std::function<bool(const StreamedEvent&)>& take);
  // The id to send as Last-Event-ID; empty: none came.
  const std::string& last_id() const { return last_id_; }

  size_t event_bytes_max = size_t{4} << 20;

 private:
  void TakeLine(std::string_view line);

  std::string line_;         // not whole yet
  bool was_return_ = false;  // the last byte: a line feed after it ends no further line
  bool has_data_ = false;
  std::string id_, name_, data_;
  std::string last_id_;  // of an event that came whole
};

}  // namespace assay
