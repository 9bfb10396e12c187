#include "worklog/seal.h"

#include <fmt/format.h>

#include "base/hash.h"

namespace assay {
namespace {

constexpr std::string_view kBegin = "<!-- rendered by assay worklog: ";
constexpr std::string_view kEnd = " -->\n";
constexpr size_t kDigits = 64;

std::string HashOf(std::string_view text, std::string_view subject) {
  return Sha256Hex(fmt::format("{}\n{}", subject, text));
}

}  // namespace

std::string WithSeal(std::string text, std::string_view subject) {
  const std::string hash = HashOf(text, subject);
  return std::move(text) + fmt::format("{}{} {}{}", kBegin, hash, subject, kEnd);
}

Seal ReadSeal(std::string_view text) {
  const size_t begin = text.rfind(kBegin);
  if (begin == std::string_view::npos || !text.ends_with(kEnd)) return {};
  std::string_view line = text.substr(begin + kBegin.size());
  line.remove_suffix(kEnd.size());
  if (line.size() < kDigits + 1 || line[kDigits] != ' ') return {};
  const std::string_view subject = line.substr(kDigits + 1);
  return {HashOf(text.substr(0, begin), subject) == line.substr(0, kDigits), std::string(subject)};
}

}  // namespace assay
