#include "web/route.h"

#include <charconv>

namespace assay {

std::string WebRequest::Query(const std::string& name) const {
  const auto found = query.find(name);
  return found == query.end() ? std::string() : found->second;
}

std::string WebRequest::Form(const std::string& name) const {
  const auto found = form.find(name);
  return found == form.end() ? std::string() : found->second;
}

std::optional<int64_t> WebRequest::Id(const std::string& name) const {
  const auto found = captures.find(name);
  if (found == captures.end()) return std::nullopt;
  const std::string& text = found->second;
  int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id <= 0) return std::nullopt;
  return id;
}

std::string JobTopic(int64_t job) { return "job " + std::to_string(job); }

}  // namespace assay
