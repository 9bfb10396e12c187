// Keeps sessions by recent use, bounded by their number and by their memory together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"

namespace assay {

// `Session`: the type that is kept (session/session.h); tests use their own.
template <typename Session>
class SessionCache {
 public:
  using Open = std::function<Result<std::unique_ptr<Session>>()>;
  // `used_bytes` returns the present memory of all of them.
  SessionCache(size_t sessions_max, uint64_t bytes_max, std::function<uint64_t()> used_bytes)
      : sessions_max_(sessions_max), bytes_max_(bytes_max), used_bytes_(std::move(used_bytes)) {}

  // Returns the session under `key` as the most recently used one. Opens it if it is missing, after
  // ending others if there are too many. Valid until the next call of any function here.
  Result<Session*> Get(const std::string& key, const Open& open) {
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry)
      if (entry->first == key) {
        entries_.splice(entries_.begin(), entries_, entry);
        return entries_.front().second.get();
      }
    while (!entries_.empty() && entries_.size() >= sessions_max_) entries_.pop_back();
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, open());
    entries_.emplace_front(key, std::move(session));
    return entries_.front().second.get();
  }
  void Drop(const std::string& key) {
    entries_.remove_if([&](const auto& entry) { return entry.first == key; });
  }
  // Ends those of which `is_unwanted` says so.
  void DropIf(const std::function<bool(const Session&)>& is_unwanted) {
    entries_.remove_if([&](const auto& entry) { return is_unwanted(*entry.second); });
  }
  // Ends the least recently used ones until the others are within the limit. One always stays.
  void Trim() {
    while (entries_.size() > 1 && used_bytes_() > bytes_max_) entries_.pop_back();
  }
  size_t size() const { return entries_.size(); }

 private:
  const size_t sessions_max_;
  const uint64_t bytes_max_;
  const std::function<uint64_t()> used_bytes_;
  std::list<std::pair<std::string, std::unique_ptr<Session>>> entries_;  // newest first
};

}  // namespace assay
