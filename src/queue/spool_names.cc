#include "queue/spool_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ranges>
#include <vector>

#include "base/hash.h"

namespace assay {
namespace {

constexpr int kPriorityMiddle = 499, kPriorityMost = 999;
constexpr size_t kRunDigits = 12, kGroupDigits = 8, kWorkDigits = 24, kWorkerDigits = 16;
constexpr size_t kStemParts = 6;

std::vector<std::string> Split(std::string_view text, char at) {
  std::vector<std::string> parts;
  for (const auto part : std::views::split(text, at)) parts.emplace_back(part.begin(), part.end());
  return parts;
}

std::optional<int> Number(const std::string& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

}  // namespace

std::string SpoolToken::Part(int index) const {
  return Split(stem, '-')[static_cast<size_t>(index)];
}

std::string SpoolToken::FileName() const {
  const std::string name = fmt::format("{}.{}.{}", stem, attempt, failures);
  return worker.empty() ? name : name + "." + worker;
}

std::optional<SpoolToken> ParseSpoolToken(std::string_view file_name) {
  const std::vector<std::string> parts = Split(file_name, '.');
  if (parts.size() != 3 && parts.size() != 4) return std::nullopt;
  const auto attempt = Number(parts[1]), failures = Number(parts[2]);
  if (!attempt || !failures || Split(parts[0], '-').size() != kStemParts) return std::nullopt;
  return SpoolToken{parts[0], *attempt, *failures, parts.size() == 4 ? parts[3] : ""};
}

std::string SpoolRunId(std::string_view run) { return Sha256Hex(run).substr(0, kRunDigits); }

std::string SpoolWorkId(const std::string& run, const std::string& key) {
  return Sha256Hex(run + '\n' + key).substr(0, kWorkDigits);
}

std::string SpoolWorkerId(std::string_view worker) {
  return Sha256Hex(worker).substr(0, kWorkerDigits);
}

std::string SpoolStem(const NewWork& work, int64_t place) {
  const int priority = std::clamp(kPriorityMiddle - work.priority, 0, kPriorityMost);
  return fmt::format("{:03}-{:020}-{}-{}-{}-{}", priority, place, SpoolRunId(work.run),
                     Sha256Hex(work.group).substr(0, kGroupDigits),
                     work.device == "cpu" ? "cpu" : "cuda", SpoolWorkId(work.run, work.key));
}

}  // namespace assay
