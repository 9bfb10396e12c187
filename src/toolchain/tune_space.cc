#include "toolchain/tune_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "toolchain/directives.h"
#include "toolchain/lines.h"
#include "toolchain/size_expression.h"

namespace assay {
namespace {

constexpr size_t kNameBytesMax = 60;
constexpr size_t kRulesMax = 16;
constexpr std::string_view kForm = "//! tune NAME = 128 256 512";
constexpr std::string_view kRuleForm = "//! require ROWS % STEP == 0";

// Longer ones first: `<` begins `<=`.
constexpr std::string_view kComparisons[] = {"==", "!=", "<=", ">=", "<", ">"};

std::expected<TuneRule, std::string> ParseRule(int line, std::string_view text) {
  for (size_t at = 0; at < text.size(); ++at)
    for (const std::string_view comparison : kComparisons) {
      if (!text.substr(at).starts_with(comparison)) continue;
      TuneRule rule{line, std::string(TrimSpace(text.substr(0, at))), std::string(comparison),
                    std::string(TrimSpace(text.substr(at + comparison.size())))};
      if (rule.left.empty() || rule.right.empty()) break;
      return rule;
    }
  return std::unexpected(
      fmt::format("it compares nothing; write it as '{}', with one of == != < <= > >=", kRuleForm));
}

std::expected<bool, std::string> Holds(const TuneRule& rule, const SizeScope& scope) {
  const auto left = EvaluateSize(rule.left, scope), right = EvaluateSize(rule.right, scope);
  if (!left || !right) return std::unexpected(left ? right.error() : left.error());
  if (rule.comparison == "==") return *left == *right;
  if (rule.comparison == "!=") return *left != *right;
  if (rule.comparison == "<=") return *left <= *right;
  if (rule.comparison == ">=") return *left >= *right;
  return rule.comparison == "<" ? *left < *right : *left > *right;
}

SizeScope ScopeAt(const TuneSpace& space, const TunePoint& point) {
  SizeScope scope;
  for (size_t i = 0; i < space.tunes.size(); ++i)
    scope.values[space.tunes[i].name] = space.tunes[i].values[point[i]];
  return scope;
}

// The fault of the rules where each line has its first value.
std::optional<std::string> FaultOfRules(const TuneSpace& space) {
  const SizeScope first = ScopeAt(space, TunePoint(space.tunes.size(), 0));
  for (const TuneRule& rule : space.rules) {
    const auto holds = Holds(rule, first);
    if (!holds) return fmt::format("line {}: //! require: {}", rule.line, holds.error());
    if (!*holds)
      return fmt::format("line {}: //! require {} {} {}: the first values do not fulfil it",
                         rule.line, rule.left, rule.comparison, rule.right);
  }
  return std::nullopt;
}

}  // namespace

std::expected<TuneLine, std::string> ParseTuneLine(int line, std::string_view text) {
  const size_t equals = text.find('=');
  const std::string_view name = TrimSpace(text.substr(0, equals));
  std::string_view rest =
      equals == std::string_view::npos ? "" : TrimSpace(text.substr(equals + 1));
  if (rest.empty()) return std::unexpected(fmt::format("write it as '{}'", kForm));
  if (name.size() > kNameBytesMax || !IsIdentifier(name))
    return std::unexpected(fmt::format("'{}' is no name (letters, digits and _, at most {})",
                                       ShownText(name), kNameBytesMax));
  TuneLine tune{line, std::string(name), {}};
  while (!rest.empty()) {
    const std::string_view word = TakeWord(rest);
    int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size())
      return std::unexpected(
          fmt::format("'{}' is no integer; write it as '{}'", ShownText(word), kForm));
    if (tune.values.size() == kTuneValuesMax)
      return std::unexpected(fmt::format("more than {} values", kTuneValuesMax));
    tune.values.push_back(value);
  }
  return tune;
}

std::expected<TuneSpace, std::string> ParseTuneSpace(std::string_view source,
                                                     std::string_view language) {
  TuneSpace space;
  std::set<std::string> names;
  for (const Directive& directive : FindDirectives(source, language)) {
    const auto fault = [&](std::string_view what) {
      return std::unexpected(
          fmt::format("line {}: //! {}: {}", directive.line, directive.word, what));
    };
    if (directive.word == "tune") {
      auto tune = ParseTuneLine(directive.line, directive.rest);
      if (!tune) return fault(tune.error());
      if (!names.insert(tune->name).second) return fault(fmt::format("a second '{}'", tune->name));
      if (space.tunes.size() == kTunesMax)
        return fault(fmt::format("more than {} of them", kTunesMax));
      space.tunes.push_back(std::move(*tune));
    } else if (directive.word == "require") {
      auto rule = ParseRule(directive.line, directive.rest);
      if (!rule) return fault(rule.error());
      if (space.rules.size() == kRulesMax)
        return fault(fmt::format("more than {} of them", kRulesMax));
      space.rules.push_back(std::move(*rule));
    }
  }
  if (auto fault = FaultOfRules(space)) return std::unexpected(*std::move(fault));
  return space;
}

uint64_t CountPoints(const TuneSpace& space) {
  constexpr uint64_t kMost = uint64_t{1} << 62;
  uint64_t count = 1;
  for (const TuneLine& tune : space.tunes)
    count = count > kMost / tune.values.size() ? kMost : count * tune.values.size();
  return count;
}

std::map<std::string, int64_t> ValuesAt(const TuneSpace& space, const TunePoint& point) {
  std::map<std::string, int64_t> values;
  for (size_t i = 0; i < space.tunes.size(); ++i)
    values[space.tunes[i].name] = space.tunes[i].values[point[i]];
  return values;
}

bool Allows(const TuneSpace& space, const TunePoint& point) {
  if (space.rules.empty()) return true;
  const SizeScope scope = ScopeAt(space, point);
  return std::all_of(space.rules.begin(), space.rules.end(),
                     [&](const TuneRule& rule) { return Holds(rule, scope).value_or(false); });
}

std::string WriteVariant(std::string_view source, const TuneSpace& space, const TunePoint& point) {
  std::string variant;
  auto tune = space.tunes.begin();
  for (int number = 1; !source.empty(); ++number) {
    const size_t end = source.find('\n');
    const std::string_view line = source.substr(0, end);
    if (tune != space.tunes.end() && tune->line == number) {
      const size_t equals = line.find('='), close = line.find("*/");
      variant += line.substr(0, equals + 1);
      const auto index = static_cast<size_t>(tune - space.tunes.begin());
      variant += fmt::format(" {}", tune->values[point[index]]);
      if (line.find("/*!") != std::string_view::npos && close != std::string_view::npos)
        variant += fmt::format(" {}", line.substr(close));
      ++tune;
    } else {
      variant += line;
    }
    if (end == std::string_view::npos) break;
    variant += '\n';
    source.remove_prefix(end + 1);
  }
  return variant;
}

std::string DescribePoint(const TuneSpace& space, const TunePoint& point) {
  std::string text;
  for (size_t i = 0; i < space.tunes.size(); ++i)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", space.tunes[i].name,
                        space.tunes[i].values[point[i]]);
  return text;
}

}  // namespace assay
