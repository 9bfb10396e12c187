#include "search/normalise.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace assay {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }

// Reads C-like text once, from left to right.
class CText {
 public:
  explicit CText(std::string_view text) : text_(text) {}

  std::string Run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        Take(1), Break();
      } else if (IsBlank(c)) {
        ++at_, blank_ = true;
      } else if (Rest().starts_with("//!") || Rest().starts_with("/*!")) {
        Copy(text_.find('\n', at_));
      } else if (Rest().starts_with("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (Rest().starts_with("/*")) {
        const size_t end = text_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? text_.size() : end + 2;
        blank_ = true;
      } else if (c == '"' && at_ > 0 && text_[at_ - 1] == 'R') {
        CopyRaw();
      } else if (c == '"' || (c == '\'' && !FollowsDigit())) {
        CopyLiteral(c);
      } else {
        Copy(at_ + 1);
      }
    }
    while (!out_.empty() && out_.back() == '\n') out_.pop_back();
    return std::move(out_);
  }

 private:
  std::string_view Rest() const { return text_.substr(at_); }
  void Take(size_t count) { at_ += count; }
  void Break() {
    blank_ = false;
    if (!out_.empty() && out_.back() != '\n') out_ += '\n';
  }
  // 1'000'000
  bool FollowsDigit() const {
    return at_ > 0 && std::isxdigit(static_cast<unsigned char>(text_[at_ - 1])) != 0;
  }
  void Copy(size_t end) {
    end = std::min(end, text_.size());
    if (std::exchange(blank_, false) && !out_.empty() && out_.back() != '\n') out_ += ' ';
    out_ += text_.substr(at_, end - at_);
    at_ = end;
  }
  void CopyLiteral(char quote) {
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote && text_[end] != '\n')
      end += text_[end] == '\\' ? size_t{2} : size_t{1};
    Copy(end + 1);
  }
  void CopyRaw() {
    const size_t open = text_.find('(', at_);
    if (open == std::string_view::npos) return Copy(text_.size());
    const std::string close = ")" + std::string(text_.substr(at_ + 1, open - at_ - 1)) + "\"";
    const size_t end = text_.find(close, open);
    Copy(end == std::string_view::npos ? text_.size() : end + close.size());
  }

  const std::string_view text_;
  size_t at_ = 0;
  bool blank_ = false;  // white space stood before what comes next
  std::string out_;
};

std::string PythonText(std::string_view source) {
  std::string out;
  while (!source.empty()) {
    const size_t end = std::min(source.find('\n'), source.size());
    std::string_view line = source.substr(0, end);
    while (!line.empty() && IsBlank(line.back())) line.remove_suffix(1);
    if (!line.empty()) (out += line) += '\n';
    source.remove_prefix(std::min(end + 1, source.size()));
  }
  return out;
}

}  // namespace

std::string NormalisedSource(std::string_view source, std::string_view language) {
  return language == "python" ? PythonText(source) : CText(source).Run();
}

}  // namespace assay
