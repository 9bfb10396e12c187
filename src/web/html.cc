#include "web/html.h"

#include "report/text.h"

namespace assay {
namespace {

bool IsPlainInUrl(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '-' || letter == '_' || letter == '~' ||
         letter == '.';
}

void AppendEscaped(std::string_view line, std::string* html) {
  for (const char letter : Printable(line, true)) switch (letter) {
      case '&':
        *html += "&amp;";
        break;
      case '<':
        *html += "&lt;";
        break;
      case '>':
        *html += "&gt;";
        break;
      case '"':
        *html += "&quot;";
        break;
      case '\'':
        *html += "&#39;";
        break;
      default:
        *html += letter;
    }
}

}  // namespace

std::string HtmlEscaped(std::string_view text) {
  std::string html;
  html.reserve(text.size() + text.size() / 8);
  // Printable() takes line breaks and tabs for spaces.
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of("\n\t", at), text.size());
    AppendEscaped(text.substr(at, end - at), &html);
    if (end < text.size()) html += text[end];
    at = end + 1;
  }
  return html;
}

std::string UrlPart(std::string_view text) {
  std::string url;
  const bool only_dots = text == "." || text == "..";
  for (const char letter : text)
    if (IsPlainInUrl(letter) && !only_dots)
      url += letter;
    else
      url += fmt::format("%{:02X}", static_cast<unsigned char>(letter));
  return url;
}

}  // namespace assay
