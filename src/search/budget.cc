#include "search/budget.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <vector>

namespace assay {
namespace {

constexpr double kMost = 1e15;

std::vector<std::string> SplitAtCommas(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

}  // namespace

Spending& Spending::operator+=(const Spending& other) {
  usd += other.usd;
  tokens += other.tokens;
  evaluations += other.evaluations;
  seconds += other.seconds;
  return *this;
}

Spending& Spending::operator-=(const Spending& other) {
  usd -= other.usd;
  tokens -= other.tokens;
  evaluations -= other.evaluations;
  seconds -= other.seconds;
  return *this;
}

Result<Spending> ParseBudget(const std::string& text) {
  Spending limits;
  for (const std::string& part : SplitAtCommas(text)) {
    const size_t equals = part.find('=');
    const std::string name = part.substr(0, equals);
    const std::string number = equals == std::string::npos ? "" : part.substr(equals + 1);
    char* end = nullptr;
    const double value = std::strtod(number.c_str(), &end);
    const bool whole = name == "evals" || name == "tokens";
    if (number.empty() || *end != '\0' || !(value > 0) || value > kMost ||
        (whole && value != std::floor(value)) || (!whole && name != "usd" && name != "seconds"))
      return UsageError(
          fmt::format("--budget {}: write it as evals=60,usd=2,tokens=100000,seconds=600; each is "
                      "a number above 0",
                      text));
    if (name == "evals") limits.evaluations = static_cast<int64_t>(value);
    if (name == "tokens") limits.tokens = static_cast<int64_t>(value);
    if (name == "usd") limits.usd = value;
    if (name == "seconds") limits.seconds = value;
  }
  return limits;
}

std::string DescribeSpending(const Spending& spent, const Spending& limits) {
  std::string text;
  const auto add = [&](bool shown, const std::string& part) {
    if (shown) text += (text.empty() ? "" : ", ") + part;
  };
  const auto of = [](auto limit) { return limit > 0 ? fmt::format(" of {}", limit) : ""; };
  add(true, fmt::format("{}{} evaluations", spent.evaluations, of(limits.evaluations)));
  add(limits.usd > 0 || spent.usd > 0, fmt::format("{:.4g}{} USD", spent.usd, of(limits.usd)));
  add(limits.tokens > 0 || spent.tokens > 0,
      fmt::format("{}{} tokens", spent.tokens, of(limits.tokens)));
  add(true, fmt::format("{:.0f}{} s", spent.seconds, of(limits.seconds)));
  return text;
}

bool BudgetLedger::Fits(const Spending& cost, const Spending& kept) const {
  Spending sum = spent_;
  sum += reserved_;
  sum += cost;
  sum += kept;
  return (limits_.usd <= 0 || sum.usd <= limits_.usd * (1 + 1e-12)) &&
         (limits_.tokens <= 0 || sum.tokens <= limits_.tokens) &&
         (limits_.evaluations <= 0 || sum.evaluations <= limits_.evaluations) &&
         (limits_.seconds <= 0 || sum.seconds < limits_.seconds);
}

}  // namespace assay
