#include "report/svg.h"

#include "report/text.h"

namespace assay {

std::string XmlEscaped(const std::string& text) {
  std::string escaped;
  for (const char letter : Printable(text, true)) {
    if (letter == '&')
      escaped += "&amp;";
    else if (letter == '<')
      escaped += "&lt;";
    else if (letter == '>')
      escaped += "&gt;";
    else if (letter == '"')
      escaped += "&quot;";
    else
      escaped += letter;
  }
  return escaped;
}

}  // namespace assay
