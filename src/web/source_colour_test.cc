#include "web/source_colour.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "web/web_testing.h"

namespace assay {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Joined(std::string_view source, SourceLanguage language) {
  std::string html;
  for (const Html& line : ColouredLines(source, language)) html += line.text() + "\n";
  return html;
}

// The text that a reader sees: without tags, entities read back.
std::string Seen(std::string html) {
  std::string text;
  for (size_t at = 0; at < html.size(); ++at) {
    if (html[at] == '<') {
      at = html.find('>', at);
      continue;
    }
    text += html[at];
  }
  for (const auto& [entity, letter] : std::initializer_list<std::pair<std::string, std::string>>{
           {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&#39;", "'"}, {"&amp;", "&"}})
    for (size_t at = text.find(entity); at != std::string::npos; at = text.find(entity, at + 1))
      text.replace(at, entity.size(), letter);
  return text;
}

TEST(SourceColour, KnowsWhatACandidateIsMadeOf) {
  const std::string html = Joined(
      "#include <x.h>\n"
      "__global__ void f(float* x) {  // adds\n"
      "  x[0] += 1'000.5e-3f; const char* s = \"a // b\";\n}\n",
      SourceLanguage::kCpp);
  EXPECT_THAT(html, HasSubstr("<span class=\"t-p\">#include &lt;x.h&gt;</span>"));
  EXPECT_THAT(html, HasSubstr("<span class=\"t-k\">__global__</span>"));
  EXPECT_THAT(html, HasSubstr("<span class=\"t-c\">// adds</span>"));
  EXPECT_THAT(html, HasSubstr("<span class=\"t-n\">1&#39;000.5e-3f</span>"));
  EXPECT_THAT(html, HasSubstr("<span class=\"t-s\">&quot;a // b&quot;</span>"));
}

TEST(SourceColour, ReadsPython) {
  const std::string html =
      Joined("@triton.jit\ndef f(x):\n    \"\"\"Two\n    lines.\"\"\"\n    return x  # done\n",
             SourceLanguage::kPython);
  EXPECT_THAT(html, HasSubstr("<span class=\"t-p\">@triton</span>"));
  EXPECT_THAT(html, HasSubstr("<span class=\"t-k\">def</span>"));
  EXPECT_THAT(html, HasSubstr("<span class=\"t-s\">&quot;&quot;&quot;Two</span>\n"));
  EXPECT_THAT(html, HasSubstr("<span class=\"t-s\">    lines.&quot;&quot;&quot;</span>\n"));
  EXPECT_THAT(html, HasSubstr("<span class=\"t-c\"># done</span>"));
}

TEST(SourceColour, ACommentOverLinesColoursEachOfThem) {
  const auto lines = ColouredLines("/* a\nb */ int", SourceLanguage::kCpp);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].text(), "<span class=\"t-c\">/* a</span>");
  EXPECT_EQ(lines[1].text(), "<span class=\"t-c\">b */</span> <span class=\"t-k\">int</span>");
}

TEST(SourceColour, LosesNoCharacter) {
  const std::string sources[] = {"int main() { return 'a' + \"\\\"\"[0]; }\n",
                                 "R\"x(a\nb)x\" R\"(unterminated",
                                 "/* open",
                                 "\"open\nnext",
                                 "0x1.8p3 1e+5 1'0 .5 a1",
                                 "def f(): return '''x\n",
                                 "#\\\nb\n",
                                 "'",
                                 "\\"};
  for (const std::string& source : sources)
    for (const auto language :
         {SourceLanguage::kCpp, SourceLanguage::kPython, SourceLanguage::kPlain}) {
      std::string expected = source;
      if (!expected.ends_with('\n')) expected += '\n';
      EXPECT_EQ(Seen(Joined(source, language)), expected);
    }
}

TEST(SourceColour, NoSourceLeavesItsLine) {
  for (const std::string& hostile : HostileStrings())
    for (const auto language : {SourceLanguage::kCpp, SourceLanguage::kPython}) {
      const std::string html = Joined(hostile, language);
      EXPECT_THAT(html, Not(HasSubstr("<script")));
      EXPECT_EQ(Seen(html).find('\x1b'), std::string::npos);
    }
}

TEST(ColouredDiff, ColoursLinesByTheirSides) {
  const Html diff = ColouredDiff("int a;\nint b;\n", "int a;\nfloat b;\n", SourceLanguage::kCpp);
  EXPECT_THAT(diff.text(),
              HasSubstr("<span class=\"cut\">-<span class=\"t-k\">int</span> b;</span>"));
  EXPECT_THAT(diff.text(),
              HasSubstr("<span class=\"add\">+<span class=\"t-k\">float</span> b;</span>"));
  EXPECT_THAT(diff.text(), Not(HasSubstr("before")));
  EXPECT_TRUE(ColouredDiff("a\n", "a\n", SourceLanguage::kCpp).empty());
}

TEST(ColouredDiff, FindsLinesBehindAnotherHunk) {
  std::string before, after;
  for (int i = 0; i < 40; ++i) {
    before += "line " + std::to_string(i) + "\n";
    after += (i == 2 || i == 30 ? "new " : "line ") + std::to_string(i) + "\n";
  }
  const std::string html = ColouredDiff(before, after, SourceLanguage::kPlain).text();
  EXPECT_THAT(html, HasSubstr("<span class=\"add\">+new 2</span>"));
  EXPECT_THAT(html, HasSubstr("<span class=\"cut\">-line 30</span>"));
  EXPECT_THAT(html, HasSubstr("<span class=\"add\">+new 30</span>"));
}

TEST(LanguageOf, GoesByTheEnding) {
  EXPECT_EQ(LanguageOf("a/b.cu"), SourceLanguage::kCpp);
  EXPECT_EQ(LanguageOf("model_new.py"), SourceLanguage::kPython);
  EXPECT_EQ(LanguageOf("Makefile"), SourceLanguage::kPlain);
}

}  // namespace
}  // namespace assay
