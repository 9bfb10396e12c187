#include "toolchain/size_expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "toolchain/directives.h"

namespace assay {
namespace {

constexpr int kDepthMax = 64;
constexpr size_t kTextBytesMax = 1000;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Recursive descent; the first error stays, and every value after it is ignored.
class Parser {
 public:
  Parser(std::string_view text, const SizeScope& scope) : text_(text), scope_(scope) {}

  std::expected<int64_t, std::string> Run() {
    const int64_t value = Sum(0);
    if (!error_ && !AtEnd()) Fail(fmt::format("'{}' is not expected here", Rest()));
    if (error_) return std::unexpected(fmt::format("in '{}': {}", text_, *error_));
    return value;
  }

 private:
  void Fail(std::string message) {
    if (!error_) error_ = std::move(message);
  }
  std::string_view Rest() const { return text_.substr(at_); }
  void SkipSpace() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool AtEnd() {
    SkipSpace();
    return at_ == text_.size();
  }
  bool Take(char c) {
    SkipSpace();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void Expect(char c) {
    if (!Take(c)) Fail(fmt::format("'{}' is missing", c));
  }

  int64_t Overflow() {
    Fail("it is larger than 64 bits hold");
    return 0;
  }
  int64_t Add(int64_t a, int64_t b) {
    int64_t result;
    return __builtin_add_overflow(a, b, &result) ? Overflow() : result;
  }
  int64_t Subtract(int64_t a, int64_t b) {
    int64_t result;
    return __builtin_sub_overflow(a, b, &result) ? Overflow() : result;
  }
  int64_t Multiply(int64_t a, int64_t b) {
    int64_t result;
    return __builtin_mul_overflow(a, b, &result) ? Overflow() : result;
  }
  bool Divides(int64_t a, int64_t b) {
    if (b == 0) {
      Fail("division by zero");
      return false;
    }
    if (b == -1 && a == std::numeric_limits<int64_t>::min()) {
      Overflow();
      return false;
    }
    return true;
  }

  int64_t Sum(int depth) {
    int64_t value = Product(depth);
    while (!error_) {
      if (Take('+'))
        value = Add(value, Product(depth));
      else if (Take('-'))
        value = Subtract(value, Product(depth));
      else
        break;
    }
    return value;
  }

  int64_t Product(int depth) {
    int64_t value = Factor(depth);
    while (!error_) {
      if (Take('*')) {
        value = Multiply(value, Factor(depth));
      } else if (Take('/')) {
        const int64_t by = Factor(depth);
        value = Divides(value, by) ? value / by : 0;
      } else if (Take('%')) {
        const int64_t by = Factor(depth);
        value = Divides(value, by) ? value % by : 0;
      } else {
        break;
      }
    }
    return value;
  }

  int64_t Factor(int depth) {
    if (depth == kDepthMax) {
      Fail("it is nested too deeply");
      return 0;
    }
    if (Take('-')) return Subtract(0, Factor(depth + 1));
    if (Take('(')) {
      const int64_t value = Sum(depth + 1);
      Expect(')');
      return value;
    }
    SkipSpace();
    if (at_ < text_.size() && IsDigit(text_[at_])) return Number();
    if (at_ < text_.size() && IsNameStart(text_[at_])) return Named(depth);
    Fail(at_ == text_.size() ? "it ends too early" : fmt::format("'{}' is no value", Rest()));
    return 0;
  }

  int64_t Number() {
    int64_t value = 0;
    while (at_ < text_.size() && IsDigit(text_[at_]) && !error_)
      value = Add(Multiply(value, 10), text_[at_++] - '0');
    if (at_ < text_.size() && IsNameStart(text_[at_]))
      Fail(fmt::format("'{}' is no decimal number", Rest()));
    return value;
  }

  std::string_view Name() {
    SkipSpace();
    const size_t begin = at_;
    if (at_ < text_.size() && IsNameStart(text_[at_]))
      while (at_ < text_.size() && IsNamePart(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  int64_t Named(int depth) {
    const std::string_view name = Name();
    if (Take('.')) return OfTensor(name, depth);
    if (Take('(')) return Function(name, depth);
    if (const auto found = scope_.values.find(name); found != scope_.values.end())
      return found->second;
    if (scope_.tensors.contains(name))
      Fail(fmt::format("{} is a tensor: write {}.size(0) or {}.count", name, name, name));
    else
      Fail(fmt::format("there is no size '{}'{}", name, Known()));
    return 0;
  }

  std::string Known() const {
    std::string names;
    for (const auto& [name, value] : scope_.values) names += (names.empty() ? "" : ", ") + name;
    for (const auto& [name, shape] : scope_.tensors)
      names += (names.empty() ? "" : ", ") + name + ".size(...)";
    return names.empty() ? "" : "; there are " + names;
  }

  int64_t OfTensor(std::string_view name, int depth) {
    const auto found = scope_.tensors.find(name);
    if (found == scope_.tensors.end()) {
      Fail(fmt::format("there is no tensor '{}'{}", name, Known()));
      return 0;
    }
    const std::vector<int64_t>& shape = found->second;
    const std::string_view what = Name();
    if (what == "count") {
      int64_t count = 1;
      for (const int64_t size : shape) count = Multiply(count, size);
      return count;
    }
    if (what != "size") {
      Fail(fmt::format("a tensor has .size(axis) and .count, no '.{}'", what));
      return 0;
    }
    Expect('(');
    const int64_t axis = Sum(depth + 1);
    Expect(')');
    if (error_) return 0;
    if (axis < 0 || axis >= static_cast<int64_t>(shape.size())) {
      Fail(fmt::format("{} has {} axes: there is no {}.size({})", name, shape.size(), name, axis));
      return 0;
    }
    return shape[static_cast<size_t>(axis)];
  }

  int64_t Function(std::string_view name, int depth) {
    const int64_t a = Sum(depth + 1);
    Expect(',');
    const int64_t b = Sum(depth + 1);
    Expect(')');
    if (error_) return 0;
    if (name == "min") return std::min(a, b);
    if (name == "max") return std::max(a, b);
    if (name == "ceil_div") {
      if (a < 0 || b <= 0) {
        Fail(fmt::format("ceil_div({}, {}): it takes no negative number, and divides by 1 or more",
                         a, b));
        return 0;
      }
      return a / b + (a % b != 0 ? 1 : 0);
    }
    Fail(fmt::format("there is no function '{}'; there are ceil_div, min and max", name));
    return 0;
  }

  std::string_view text_;
  const SizeScope& scope_;
  size_t at_ = 0;
  std::optional<std::string> error_;
};

}  // namespace

std::expected<int64_t, std::string> EvaluateSize(std::string_view text, const SizeScope& scope) {
  if (text.size() > kTextBytesMax)
    return std::unexpected(fmt::format("an expression of more than {} bytes", kTextBytesMax));
  return Parser(text, scope).Run();
}

}  // namespace assay
