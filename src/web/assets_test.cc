#include "web/assets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>

#include "base/hash.h"

namespace assay {
namespace {

using testing::HasSubstr;
using testing::Not;

// The bytes of base64 text as hexadecimal digits.
std::string HexOfBase64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string hex;
  uint32_t bits = 0;
  int count = 0;
  for (const char letter : text) {
    if (letter == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(kDigits.find(letter));
    count += 6;
    for (; count >= 4; count -= 4) hex += "0123456789abcdef"[bits >> (count - 4) & 15];
  }
  return hex;
}

std::string HashAfter(std::string_view policy, std::string_view name) {
  const std::string open = std::string(name) + " 'sha256-";
  const size_t at = policy.find(open) + open.size();
  return HexOfBase64(policy.substr(at, policy.find('\'', at) - at)).substr(0, 64);
}

TEST(PageSecurityPolicy, NamesStyleAndScriptByTheirHashes) {
  const std::string_view policy = PageSecurityPolicy();
  EXPECT_EQ(HashAfter(policy, "style-src"), Sha256Hex(PageStyleText()));
  EXPECT_EQ(HashAfter(policy, "script-src"), Sha256Hex(PageScriptText()));
}

TEST(PageSecurityPolicy, AllowsNothingElse) {
  const std::string policy(PageSecurityPolicy());
  EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
  EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'"));
  EXPECT_THAT(policy, HasSubstr("base-uri 'none'"));
  EXPECT_THAT(policy, HasSubstr("form-action 'self'"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
  EXPECT_THAT(policy, Not(HasSubstr("http")));
}

TEST(PageScript, CannotEndItsElement) {
  EXPECT_EQ(PageScriptText().find("</"), std::string_view::npos);
  EXPECT_EQ(PageStyleText().find("</"), std::string_view::npos);
  EXPECT_EQ(PageScriptText().find("innerHTML"), std::string_view::npos);
}

}  // namespace
}  // namespace assay
