#include "web/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "web/web_testing.h"

namespace assay {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Html, EscapesTextAndLeavesHtmlAndNumbers) {
  const Html inner = Markup("<b>{}</b>", "1 < 2 & \"3\" 'x'");
  EXPECT_EQ(inner.text(), "<b>1 &lt; 2 &amp; &quot;3&quot; &#39;x&#39;</b>");
  EXPECT_EQ(Markup("<p title=\"{}\">{}{:.1f}</p>", "\"", inner, 1.25).text(),
            "<p title=\"&quot;\">" + inner.text() + "1.2</p>");
}

TEST(Html, NoStringLeavesItsPlace) {
  for (const std::string& hostile : HostileStrings()) {
    const std::string html = HtmlEscaped(hostile);
    EXPECT_EQ(html.find_first_of("<>\"'"), std::string::npos) << hostile;
    for (const char letter : html)
      EXPECT_TRUE(static_cast<unsigned char>(letter) >= 0x20 || letter == '\n' || letter == '\t');
    // Each ampersand begins one of the five entities that the escape itself writes.
    for (size_t at = html.find('&'); at != std::string::npos; at = html.find('&', at + 1)) {
      const std::string rest = html.substr(at, 6);
      EXPECT_TRUE(rest.starts_with("&amp;") || rest.starts_with("&lt;") ||
                  rest.starts_with("&gt;") || rest == "&quot;" || rest.starts_with("&#39;"))
          << rest;
    }
  }
  EXPECT_GE(HostileStrings().size(), 100u);
}

TEST(Html, KeepsLineBreaksAndTabs) { EXPECT_EQ(HtmlEscaped("a\n\tb\n"), "a\n\tb\n"); }

TEST(Html, HidesWhatNobodySees) {
  const std::string html = HtmlEscaped("x\x1b[31m\xe2\x80\xaey\xff");
  EXPECT_THAT(html, Not(HasSubstr("\x1b")));
  EXPECT_THAT(html, Not(HasSubstr("\xe2\x80\xae")));
  EXPECT_THAT(html, HasSubstr("?"));
}

TEST(UrlPart, IsOnePartWhateverItHolds) {
  EXPECT_EQ(UrlPart("a-b_c.1~"), "a-b_c.1~");
  EXPECT_EQ(UrlPart("a/b?c#d&e=f%"), "a%2Fb%3Fc%23d%26e%3Df%25");
  EXPECT_EQ(UrlPart(".."), "%2E%2E");
  for (const std::string& hostile : HostileStrings()) {
    const std::string part = UrlPart(hostile);
    EXPECT_EQ(part.find_first_of("/?#&=:\\\"'<> \n"), std::string::npos) << hostile;
    EXPECT_NE(part, "..");
  }
}

}  // namespace
}  // namespace assay
