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
  EXPECT_THAT(ProseHtml("![x](https://example.org/x.png)"), Not(HasSubstr("example.org")));
  EXPECT_THAT(ProseHtml("[x](https://example.org/)"), HasSubstr("href=\"https://example.org/\""));
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
