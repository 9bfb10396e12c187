#include "worklog/prose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"

namespace assay {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Prose, MarkdownBecomesHtml) {
  const std::string html =
      ProseHtml("# Title\n\n**bold** and `code`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n");
  EXPECT_THAT(html, HasSubstr("<h3>Title</h3>"));
  EXPECT_THAT(html, HasSubstr("<strong>bold</strong>"));
  EXPECT_THAT(html, HasSubstr("<td>1</td>"));
  EXPECT_EQ(ProseHtml(""), "");
}

TEST(Prose, RawHtmlStaysOut) {
  for (const char* text : {"<script>alert(1)</script>", "a <img src=x onerror=alert(1)> b",
                           "<b onclick=alert(1)>x</b>", "<iframe src=\"//x\"></iframe>",
                           "<svg onload=alert(1)>", "</section></main>"}) {
    const std::string html = ProseHtml(text);
    for (const char* bad : {"<script", "<img", "<b ", "<iframe", "<svg", "</main"})
      EXPECT_THAT(html, Not(HasSubstr(bad))) << text;
  }
}

TEST(Prose, LinksRunNoScriptsAndPicturesLoadNothing) {
  EXPECT_THAT(ProseHtml("[x](javascript:alert(1))"), Not(HasSubstr("javascript:")));
  EXPECT_THAT(ProseHtml("[x](vbscript:x) [y](data:text/html;base64,x)"), Not(HasSubstr("script:")));
  for (const char* url :
       {"java&Tab;script:alert(1)", "java&NewLine;script:x", "&#1;javascript:x",
        "javascript&colon;x", "<java script:x>", "JaVaScRiPt:x", "intent:x", "file:///etc/passwd",
        "DATA:text/html,x", "/\\example.org", "//example.org"})
    EXPECT_THAT(ProseHtml(std::string("[x](") + url + ")"), HasSubstr("<a href=\"\">")) << url;
  for (const char* url :
       {"HTTP://example.org/a:b", "mailto:a@example.org", "#s1", "a/b.md?c:d", "/"})
    EXPECT_THAT(ProseHtml(std::string("[x](") + url + ")"), HasSubstr(url)) << url;
  EXPECT_THAT(ProseHtml("![x](https://example.org/x.png)"), Not(HasSubstr("example.org")));
  EXPECT_THAT(ProseHtml("[x](https://example.org/)"), HasSubstr("href=\"https://example.org/\""));
}

// A report once showed a reader's terminal codes and turned text, as they stood or as references.
TEST(Prose, CharactersThatDoNotShowAreQuestionMarks) {
  EXPECT_EQ(ProseHtml("a\x1b[31mb"), "<p>a?[31mb</p>\n");
  EXPECT_EQ(ProseHtml("a\xe2\x80\xae"
                      "b"),
            "<p>a?b</p>\n");
  EXPECT_EQ(ProseHtml("a&#x202E;b&#1;c"), "<p>a?b?c</p>\n");
  EXPECT_EQ(ProseHtml("`a\tb`\r\n\r\nc"), "<p><code>a\tb</code></p>\n<p>c</p>\n");
}

TEST(Prose, BombsCostLittle) {
  std::string nested, stars, links, tables = "|a|\n|-|\n";
  for (int i = 0; i < 50'000; ++i) nested += "> ";
  for (int i = 0; i < 50'000; ++i) stars += "*a **a ";
  for (int i = 0; i < 50'000; ++i) links += "[a](";
  for (int i = 0; i < 50'000; ++i) tables += "|b|\n";
  for (const std::string& bomb : {nested, stars, links, tables, std::string(5 << 20, '[')}) {
    const int64_t start = MonotonicNs();
    const std::string html = ProseHtml(bomb);
    EXPECT_LT(MonotonicNs() - start, 5'000'000'000);
    EXPECT_LT(html.size(), size_t{16} << 20);
  }
  EXPECT_THAT(ProseHtml(std::string(5 << 20, 'x')), HasSubstr("The rest is left out"));
}

}  // namespace
}  // namespace assay
