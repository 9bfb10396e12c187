// Markup that cannot be forged: text becomes HTML here alone, and every piece of foreign text is
// escaped by its type. Pure.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace assay {

// Well-formed HTML. It is made by Markup(), which escapes, and by Trusted().
class Html {
 public:
  Html() = default;
  const std::string& text() const { return text_; }
  bool empty() const { return text_.empty(); }
  Html& operator+=(const Html& other) {
    text_ += other.text_;
    return *this;
  }
  friend Html operator+(Html left, const Html& right) { return std::move(left += right); }

  // HTML that another part of Assay has written and escaped, such as a chart.
  static Html Trusted(std::string text) {
    Html html;
    html.text_ = std::move(text);
    return html;
  }

 private:
  std::string text_;
};

// The one escape: text for an element or for an attribute in double quotes. Line breaks and tabs
// stay. Other control characters, bytes that are not UTF-8 and characters that change the direction
// of writing become '?'.
std::string HtmlEscaped(std::string_view text);

// The text in the place of an argument of Markup().
template <typename T>
auto ShownInMarkup(const T& value) {
  if constexpr (std::same_as<T, Html>)
    return std::string_view(value.text());
  else if constexpr (std::convertible_to<const T&, std::string_view>)
    return HtmlEscaped(std::string_view(value));
  else {
    static_assert(std::is_arithmetic_v<T>, "Markup() takes text, numbers and Html");
    return value;
  }
}

// As fmt::format: text is escaped, Html and numbers stand as they are. The format is a literal of
// the source, and has double quotes around attributes.
template <typename... Arguments>
Html Markup(fmt::format_string<decltype(ShownInMarkup(std::declval<const Arguments&>()))...> format,
            const Arguments&... arguments) {
  return Html::Trusted(fmt::format(format, ShownInMarkup(arguments)...));
}

// Text as HTML.
inline Html Text(std::string_view text) { return Html::Trusted(HtmlEscaped(text)); }

// Text as a part of a URL's path or query: all but letters, digits, '-', '.', '_' and '~' becomes
// %XX. "." and ".." become "%2E" and "%2E%2E", which no path resolves.
std::string UrlPart(std::string_view text);

}  // namespace assay
