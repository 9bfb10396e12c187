#include "worklog/page.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "worklog/class_page.h"
#include "worklog/climb_chart.h"
#include "worklog/facts_text.h"
#include "worklog/markdown.h"
#include "worklog/page_style.h"
#include "worklog/worklog_testing.h"

namespace assay {
namespace {

using testing::HasSubstr;
using testing::Not;

// The page without the elements that it writes itself: no tag may be left.
std::vector<std::string> TagsOf(const std::string& html) {
  std::vector<std::string> tags;
  for (size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    size_t end = at + 1;
    while (end < html.size() && (std::isalnum(static_cast<unsigned char>(html[end])) != 0 ||
                                 html[end] == '/' || html[end] == '!'))
      ++end;
    tags.push_back(html.substr(at + 1, end - at - 1));
  }
  return tags;
}

// Texts that would be more than text if they were not escaped.
std::vector<std::string> HostileTexts() {
  std::vector<std::string> texts;
  const std::vector<std::string> payloads = {"<script>alert(1)</script>",
                                             "<img src=x onerror=alert(1)>",
                                             "<svg onload=alert(1)>",
                                             "<iframe srcdoc='<script>alert(1)</script>'>",
                                             "<a href=javascript:alert(1)>x</a>",
                                             "<style>*{display:none}</style>",
                                             "<meta http-equiv=refresh content=0>",
                                             "<object data=x>",
                                             "<base href=//x>",
                                             "<form action=//x><input autofocus onfocus=alert(1)>"};
  const std::vector<std::string> openings = {
      "",       "\"",      "'",          "-->",   "]]>",
      "</pre>", "</code>", "</details>", "```\n", "</title></style></script>"};
  for (const std::string& opening : openings)
    for (const std::string& payload : payloads) texts.push_back(opening + payload);
  return texts;
}

Worklog WithText(const std::string& text) {
  MatchBuilder builder = LostMatch();
  builder.words().author = text;
  builder.words().problem = text;
  builder.words().size = text;
  builder.words().stuck[0].text = text;
  builder.words().claims[0].text = text;
  for (std::string& prose : builder.words().prose) prose = text;
  Worklog worklog = builder.Build();
  for (auto& [file, source] : worklog.sources) source = text + "\n" + text;
  Match& match = worklog.match;
  match.predictions[0].said.reason = text;
  match.series[0].said.prompt = match.series[0].said.system = match.series[0].said.proposer = text;
  match.series[0].said.provenance = text;
  match.answers[0].said.text = match.answers[0].said.trouble = match.answers[0].said.prompt = text;
  for (VersionFact& version : match.versions) {
    version.verdict->log = text;
    version.verdict->message = text;
    version.verdict->bottleneck = text;
    version.verdict->machine.cpu = text;
    version.verdict->id = text;
  }
  for (VersionWords& words : worklog.words.versions) words.why = text;
  return worklog;
}

TEST(WorklogPage, HostileTextStaysText) {
  const std::vector<std::string> texts = HostileTexts();
  ASSERT_EQ(texts.size(), 100u);
  for (const std::string& text : texts) {
    const Worklog worklog = WithText(text);
    for (const PageKind kind : {PageKind::kReport, PageKind::kPresentation}) {
      const std::string html = RenderWorklogPage(worklog, kind, "");
      size_t styles = 0, metas = 0;
      for (const std::string& tag : TagsOf(html)) {
        for (const char* bad : {"script", "img", "iframe", "object", "base", "form", "input"})
          ASSERT_NE(tag, bad) << text;
        styles += tag == "style";
        metas += tag == "meta";
      }
      EXPECT_EQ(styles, 1u) << text;
      EXPECT_EQ(metas, 4u) << text;
      EXPECT_THAT(html, Not(HasSubstr("=\"javascript:"))) << text;
    }
    // In Markdown it stands in code, or escaped; prose is the author's own.
    Worklog without = worklog;
    for (std::string& prose : without.words.prose) prose.clear();
    const std::string markdown = RenderMarkdown(without);
    size_t at = 0;
    bool in_code = false;
    std::string fence;
    for (; at < markdown.size();) {
      const size_t end = std::min(markdown.find('\n', at), markdown.size());
      const std::string line = markdown.substr(at, end - at);
      at = end + 1;
      if (line.starts_with("```") && !in_code) {
        fence = line.substr(0, line.find_first_not_of('`'));
        in_code = true;
      } else if (in_code && line == fence) {
        in_code = false;
      } else if (!in_code) {
        for (const char* bad : {"<script", "<img", "<svg", "<iframe", "<style", "<form"})
          for (size_t found = line.find(bad); found != std::string::npos;
               found = line.find(bad, found + 1))
            ASSERT_TRUE(found > 0 && line[found - 1] == '\\') << line;
      }
    }
    EXPECT_FALSE(in_code);
  }
}

TEST(WorklogPage, ItHasFiveSectionsAndStandsAlone) {
  const std::string html = RenderWorklogPage(LostMatch().Build(), PageKind::kReport, "");
  for (const Section section : kAllSections)
    EXPECT_THAT(html, HasSubstr("</span> " + HtmlText(SectionTitle(section)) + "</h2>"));
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr(" src=")));
  EXPECT_THAT(html, HasSubstr("aria-labelledby=\"climb-title climb-text\""));
  EXPECT_THAT(html, HasSubstr("m1 is faster"));
}

TEST(WorklogPage, AnEmptyMatchIsAPage) {
  const std::string html = RenderWorklogPage(MatchBuilder().Build(), PageKind::kReport, "");
  EXPECT_THAT(html, HasSubstr("Nothing is predicted yet."));
  EXPECT_THAT(html, HasSubstr("No model has tried yet."));
}

// `count` versions with a source of about 120 lines.
Worklog Long(int count) {
  MatchBuilder builder;
  builder.Predict(2);
  for (int i = 1; i <= count; ++i) {
    Verdict verdict = SpeedVerdict(fmt::format("{:012x}", i), 1 + 0.01 * i);
    for (int pair = 0; pair < 9; ++pair)
      verdict.samples.push_back({"eager", "rcrcrc", {100'000, 90'000, 100'001, 90'001, 1, 2}, {}});
    builder.Measure(Player::kHand, fmt::format("v{}", i), "v1 was slow by 20%", verdict);
  }
  Worklog worklog = builder.Build();
  int number = 0;
  for (auto& [file, source] : worklog.sources) {
    ++number;
    for (int line = 0; line < 120; ++line)
      source += fmt::format("  const float value_{} = x[{}] * {}.0f;  // a line of code\n", line,
                            line, line % 7 == number % 7 ? number : 1);
  }
  return worklog;
}

TEST(WorklogPage, TwentyVersionsAreLessThanOneAndAHalfMegabytes) {
  const std::string html = RenderWorklogPage(Long(20), PageKind::kReport, "");
  EXPECT_LT(html.size(), 1'500'000u);
}

TEST(WorklogPage, AHundredVersionsTakeLessThanASecond) {
  const Worklog worklog = Long(100);
  const int64_t start = MonotonicNs();
  RenderWorklogPage(worklog, PageKind::kReport, "");
  RenderMarkdown(worklog);
  // Ten times of what it takes: the tests' machines are busy, and their build is slow.
  EXPECT_LT(MonotonicNs() - start, 5'000'000'000);
}

TEST(WorklogPage, DiffsHaveTheirColours) {
  EXPECT_EQ(DiffHtml("--- a\n+++ b\n@@ -1 +1 @@\n-x < y\n+x > y\n same\n"),
            "<b>--- a</b><b>+++ b</b><b>@@ -1 +1 @@</b><del>-x &lt; y</del><ins>+x &gt; y</ins>"
            " same\n");
}

TEST(ClimbChart, ItSaysInWordsWhatItShows) {
  const std::string svg = RenderClimbSvg(LostMatch().Build().match, true, "climb");
  EXPECT_THAT(svg, HasSubstr("<desc id=\"climb-text\">On softmax. v1: "));
  EXPECT_EQ(RenderClimbSvg(MatchBuilder().Build().match, true, "climb"), "");
}

TEST(Markdown, AFenceIsLongerThanAnyInTheText) {
  EXPECT_EQ(MarkdownFence("a\n````\nb", "text"), "`````text\na\n````\nb\n`````");
  EXPECT_EQ(MarkdownEscaped("- a*b_c|d\ne"), "\\- a\\*b\\_c\\|d e");
}

TEST(ClassPage, ItHasARowAWorklog) {
  const Worklog worklog = LostMatch().Build();
  const Rubric rubric = ParseRubric(DefaultRubricText(), "default").value();
  const Grade grade =
      GradeWorklog(worklog, CheckWorklog(worklog, GoodWitness(), ""), rubric, {}).value();
  const std::string html =
      RenderClassPage(std::vector<ClassEntry>{{"<b>", &worklog, &grade}, {"b", &worklog, &grade}});
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\">&lt;b&gt;</th>"));
  EXPECT_THAT(html, HasSubstr("<b>100</b>* of 100"));
  EXPECT_THAT(html, HasSubstr("v3 0.900x (0.891x to 0.909x)"));
}

TEST(Page, ItBeginsWithWhatBothSidesWereGiven) {
  MatchBuilder builder;
  builder.Predict(2).Ask(1,
                         "Write.\n\n# Reference\n\nx\n\n# Rules\n\n- No <clock>.\n\n# More\n\ny\n");
  Worklog worklog = builder.Build();
  worklog.reference = "class Model(nn.Module): pass  # a < b\n";
  const std::string page = RenderWorklogPage(worklog, PageKind::kReport, "");
  const size_t prediction = page.find("Limit: memory");
  EXPECT_LT(page.find("class Model(nn.Module): pass  # a &lt; b"), prediction);
  EXPECT_LT(page.find("- No &lt;clock&gt;."), prediction);
  EXPECT_EQ(RulesText(worklog.match), "- No <clock>.\n");
  EXPECT_THAT(RenderMarkdown(worklog), HasSubstr("class Model(nn.Module): pass"));
}

// A page that is to be handed in named a folder of the author's machine.
TEST(Page, APathOfTheAuthorsMachineIsNotShown) {
  EXPECT_EQ(ProposerText("inbox:/data/match/inbox"), "inbox:inbox");
  EXPECT_EQ(ProposerText("inbox:/data/inbox/"), "inbox:inbox");
  EXPECT_EQ(ProposerText("inbox:/inbox"), "inbox:inbox");
  EXPECT_EQ(ProposerText("replay:runs/a.jsonl"), "replay:a.jsonl");
  EXPECT_EQ(ProposerText("inbox:inbox"), "inbox:inbox");
  EXPECT_EQ(ProposerText("openai:m@http://localhost:8080/v1"), "openai:m@http://localhost:8080/v1");
  EXPECT_EQ(ProposerText("inbox:/"), "inbox:/");
}

TEST(Page, OtherVerdictsStandWithTheirWhy) {
  MatchBuilder builder = LostMatch();
  builder.TakeIn(DuelVerdict("cccccccccccc", "v2", "v1", 1.4), "are 8 lanes worth it?")
      .Duel("v3", "m1", DuelVerdict("dddddddddd01", "v3", "m1", 0.5));
  const Worklog worklog = builder.Build();
  for (const std::string& text :
       {RenderWorklogPage(worklog, PageKind::kReport, ""), RenderMarkdown(worklog)}) {
    EXPECT_THAT(text, HasSubstr("cccccccccccc: v2 against v1: faster"));
    EXPECT_THAT(text, HasSubstr("are 8 lanes worth it?"));
    EXPECT_THAT(text, HasSubstr("dddddddddd01: v3 against m1: slower"));
  }
}

}  // namespace
}  // namespace assay
