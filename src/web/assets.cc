#include "web/assets.h"

#include <fmt/format.h>

#include <string>

#include "base/hash.h"
#include "web/assets_text.h"
#include "worklog/page_style.h"

namespace assay {
namespace {

// The SHA-256 of a text as a source of a policy: 'sha256-' and its bytes in base64.
std::string PolicyHash(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::string hex = Sha256Hex(text);
  const auto digit = [&](size_t at) {
    const char letter = hex[at];
    return static_cast<uint32_t>(letter <= '9' ? letter - '0' : letter - 'a' + 10);
  };
  std::string base64;
  // 3 hexadecimal digits are 2 of base64; 64 of them leave one, which two bits fill.
  for (size_t at = 0; at + 3 <= hex.size(); at += 3) {
    const uint32_t bits = digit(at) << 8 | digit(at + 1) << 4 | digit(at + 2);
    base64 += kDigits[bits >> 6];
    base64 += kDigits[bits & 63];
  }
  base64 += kDigits[digit(hex.size() - 1) << 2];
  return "'sha256-" + base64 + "='";
}

// The style of a worklog's report, which is a page of its own.
std::string ReportStyleText() {
  const std::string element = PageStyle();
  const size_t begin = element.find('>') + 1;
  return element.substr(begin, element.rfind("</style>") - begin);
}

}  // namespace

std::string_view PageStyleText() { return kPageStyle; }
std::string_view PageScriptText() { return kPageScript; }

std::string_view PageSecurityPolicy() {
  static const std::string policy = fmt::format(
      "default-src 'none'; style-src {} {}; script-src {}; img-src 'self' data:; "
      "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
      PolicyHash(kPageStyle), PolicyHash(ReportStyleText()), PolicyHash(kPageScript));
  return policy;
}

}  // namespace assay
