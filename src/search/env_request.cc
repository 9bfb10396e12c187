#include "search/env_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "problem/nearest.h"

namespace assay {

Result<std::string> TextOf(const nlohmann::ordered_json& request, const char* field) {
  const auto found = request.find(field);
  if (found == request.end() || !found->is_string())
    return UsageError(fmt::format("'{}' is missing, or is no text", field));
  return found->get<std::string>();
}

Result<void> CheckFields(const nlohmann::ordered_json& request,
                         const std::vector<std::string>& known) {
  for (const auto& [field, value] : request.items())
    if (std::ranges::find(known, field) == known.end())
      return UsageError(fmt::format("unknown field '{}'{}", field, Suggestion(field, known)));
  return {};
}

Result<uint64_t> SeedOf(const nlohmann::ordered_json& request) {
  const auto found = request.find("seed");
  if (found == request.end()) return 0;
  if (found->is_number_unsigned()) return found->get<uint64_t>();
  if (found->is_string()) {
    const std::string text = found->get<std::string>();
    uint64_t seed = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), seed);
    if (read.ec == std::errc() && read.ptr == text.data() + text.size()) return seed;
  }
  return UsageError("'seed' is a whole number from 0 on");
}

}  // namespace assay
