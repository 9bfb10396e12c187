#include "builders/constants.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace assay {
namespace {

constexpr std::string_view kPrefix = "ASSAY_";
constexpr size_t kJsonBytesMax = 64 << 10;

bool IsPartOfMacro(char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

bool IsPartOfWord(char c) { return IsPartOfMacro(c) || (c >= 'a' && c <= 'z'); }

bool IsMacro(std::string_view name) {
  return name.starts_with(kPrefix) && name.size() > kPrefix.size() && name.size() <= 80 &&
         std::ranges::all_of(name, IsPartOfMacro);
}

bool IsNumber(std::string_view text) {
  return !text.empty() && text.size() <= 40 &&
         text.find_first_not_of("0123456789+-.e") == std::string_view::npos;
}

std::set<std::string_view> MacrosOf(std::string_view source) {
  std::set<std::string_view> found;
  for (size_t at = source.find(kPrefix); at != std::string_view::npos;
       at = source.find(kPrefix, at + 1)) {
    if (at > 0 && IsPartOfWord(source[at - 1])) continue;
    size_t end = at;
    while (end < source.size() && IsPartOfWord(source[end])) ++end;
    if (const std::string_view word = source.substr(at, end - at); IsMacro(word))
      found.insert(word);
  }
  return found;
}

}  // namespace

Constants ReadConstants(std::string_view json) {
  json = json.substr(0, std::min(json.substr(0, kJsonBytesMax).find('\0'), kJsonBytesMax));
  const auto object = nlohmann::json::parse(json, nullptr, false);
  Constants constants;
  if (!object.is_object()) return constants;
  for (const auto& [name, value] : object.items())
    if (value.is_string() && IsMacro(name) && IsNumber(value.get_ref<const std::string&>()))
      constants.emplace(name, value.get<std::string>());
  return constants;
}

std::vector<std::string> MacrosNamed(std::string_view source, std::string_view header) {
  const std::set<std::string_view> known = MacrosOf(header);
  std::vector<std::string> named;
  for (const std::string_view macro : MacrosOf(source))
    if (!known.contains(macro)) named.emplace_back(macro);
  return named;
}

std::vector<std::string> ConstantFlags(std::string_view source, std::string_view header,
                                       const Constants& constants) {
  std::vector<std::string> flags;
  for (const std::string& macro : MacrosNamed(source, header))
    if (const auto found = constants.find(macro); found != constants.end()) {
      // A negative number stands in brackets.
      const bool negative = found->second.starts_with('-');
      flags.push_back("-D" + macro + "=" + (negative ? "(" + found->second + ")" : found->second));
    }
  return flags;
}

}  // namespace assay
