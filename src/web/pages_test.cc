// Each page with hostile text in every field that comes from elsewhere, and with nothing at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "web/entry_pages.h"
#include "web/job_pages.h"
#include "web/machine_page.h"
#include "web/sample_views.h"
#include "web/submit_page.h"
#include "web/web_testing.h"

namespace assay {
namespace {

using testing::HasSubstr;
using testing::Not;

const SampleData& Data() {
  static const SampleData data = [] {
    auto read = ReadSampleData(ASSAY_SOURCE_DIRECTORY);
    EXPECT_TRUE(read) << read.error().message;
    return std::move(*read);
  }();
  return data;
}

// The elements of a page, by their names, in order: what a string can change if it is no text.
std::vector<std::string> ElementsOf(const std::string& page) {
  std::vector<std::string> names;
  for (size_t at = page.find('<'); at != std::string::npos; at = page.find('<', at + 1)) {
    size_t end = at + 1;
    while (end < page.size() && (std::isalnum(static_cast<unsigned char>(page[end])) ||
                                 page[end] == '/' || page[end] == '!'))
      ++end;
    names.push_back(page.substr(at + 1, end - at - 1));
    // Style and script are ours alone.
    if (names.back() == "style" || names.back() == "script")
      at = page.find("</" + names.back(), at);
  }
  return names;
}

// Every attribute that names an address leads to this server.
void ExpectOwnAddresses(const std::string& page) {
  for (const std::string name : {" href=\"", " action=\"", " src=\"", " data-events=\""})
    for (size_t at = page.find(name); at != std::string::npos; at = page.find(name, at + 1)) {
      const size_t begin = at + name.size();
      const std::string address = page.substr(begin, page.find('"', begin) - begin);
      EXPECT_TRUE(
          (address.starts_with("/") && !address.starts_with("//") && !address.starts_with("/\\")) ||
          address.starts_with("#") || address.starts_with("data:image/svg+xml,"))
          << address.substr(0, 200);
    }
}

// `render` makes a page with a text in all places for foreign text.
void ExpectTextStaysText(const std::function<std::string(const std::string&)>& render) {
  const std::vector<std::string> expected = ElementsOf(render("plain"));
  for (const std::string& hostile : HostileStrings()) {
    const std::string page = render(hostile);
    EXPECT_EQ(ElementsOf(page), expected) << hostile.substr(0, 100);
    EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
    EXPECT_EQ(page.find('\x1b'), std::string::npos);
    ExpectOwnAddresses(page);
    if (testing::Test::HasFailure()) return;
  }
}

PageFrame FrameFor(const std::string& name) {
  PageFrame frame;
  frame.viewer = {Account{1, name, Role::kStudent, 1}, "token"};
  frame.notice = name;
  return frame;
}

BoardEntry EntryOf(const std::string& text) {
  BoardEntry entry;
  entry.verdict = entry.problem = entry.size = entry.author = entry.runner = text;
  entry.gpu_or_cpu = entry.precision = entry.form = entry.source_hash = text;
  entry.outcome = "faster";
  entry.speedup = 2;
  entry.ci_low = 1.9;
  entry.ci_high = 2.1;
  entry.time = "2026-11-27T20:00:00Z";
  return entry;
}

TEST(BoardPage, TextStaysText) {
  ExpectTextStaysText([](const std::string& text) {
    BoardView view;
    view.filter.problem = view.filter.size = view.filter.tier = text;
    view.problems = view.sizes = view.tiers = view.precisions = view.processors = {text};
    view.players = {{1, true, text, Role::kMachine, ShareOf(1, 2), 1, 1.5, 3}};
    view.entries = {{1, true, EntryOf(text)}};
    view.boards = {{text, {{2, false, EntryOf(text)}}}};
    view.fouls = {{EntryOf(text), text}};
    view.curves = {{text, ChartSide::kFirst, {{0, 1}, {2, 0}}, 2}};
    view.rank_rule = view.entries_title = text;
    const std::string of_problem = RenderBoardPage(view, FrameFor(text));
    view.filter.problem.clear();
    return of_problem + RenderBoardPage(view, FrameFor(text));
  });
}

TEST(ProblemPages, TextStaysText) {
  ExpectTextStaysText([](const std::string& text) {
    ProblemView view;
    view.problem.name = view.problem.mechanism = view.problem.lesson = view.problem.flops = text;
    view.problem.bytes = view.problem.precision = view.problem.tolerance = text;
    view.problem.sizes[text][text] = text;
    view.best[text] = EntryOf(text);
    view.entries = {{1, false, EntryOf(text)}};
    view.size = text;
    return RenderProblemPage(text, RenderProblem(view), FrameFor(text)) +
           RenderProblemsPage(RenderProblems({{view.problem, 1, EntryOf(text)}}, text),
                              FrameFor(text));
  });
}

BaselineResult ResultOf(double speedup, const std::string& decision) {
  BaselineResult result;
  result.time_ns = result.candidate_time_ns = 2e3;
  result.speedup = speedup;
  result.ci_low = speedup * 0.99;
  result.ci_high = speedup * 1.01;
  result.decision = decision;
  result.pairs = 9;
  return result;
}

// A verdict with a text wherever one may stand.
Verdict VerdictOf(const std::string& text) {
  Verdict verdict = SampleVerdict(Data(), "531b5592ba27").verdict;
  verdict.id = verdict.message = verdict.problem.name = verdict.problem.size = text;
  verdict.problem.set = {{text, text}};
  verdict.candidate.path = verdict.candidate.flags = text;
  verdict.candidate.artifact = verdict.candidate.hash = verdict.problem.hash = text;
  verdict.correctness->hint = verdict.correctness->note = text;
  verdict.correctness->first_mismatch->output = text;
  for (DrawRecord& draw : verdict.correctness->draws) draw.kind = draw.reason = text;
  verdict.speed = Speed{true, 1, {}, text, {}};
  verdict.speed->baselines[text] = ResultOf(2, text);
  verdict.speed->baselines[text].note = text;
  verdict.samples = {{text, "rccr", {10, 5, 5, 10}, {0, 0, 0, 0}}};
  verdict.work = Work{1e9, text, 1e9, 1e8, text};
  verdict.roofline = Roofline{1e10, 1e11, text, 10, 100, text, 50, 25, text};
  verdict.kernels = {KernelRecord{}};
  verdict.kernels[0].name = verdict.kernels[0].limiter = verdict.bottleneck = text;
  verdict.foul = Foul{text, text};
  verdict.machine.cpu = verdict.machine.isolation = text;
  verdict.toolchain = {{text, text}};
  verdict.log = text;
  return verdict;
}

TEST(VerdictPage, TextStaysText) {
  ExpectTextStaysText([](const std::string& text) {
    VerdictView view;
    view.verdict = VerdictOf(text);
    view.author = view.runner = view.server = view.best_other = view.machine_code = text;
    view.hidden_until = text;
    view.job = 3;
    view.may_rejudge = true;
    return RenderVerdictPage(view, FrameFor(text));
  });
}

TEST(VerdictPage, HidesTheSourceUntilTheDeadline) {
  VerdictView view = SampleVerdict(Data(), "814b70bddabf");
  EXPECT_THAT(RenderVerdictPage(view, {}), HasSubstr("kLanes"));
  view.machine_code = "vaddps";
  view.hidden_until = "2026-12-04T18:00:00Z";
  const std::string page = RenderVerdictPage(view, {});
  EXPECT_THAT(page, Not(HasSubstr("kLanes")));
  EXPECT_THAT(page, Not(HasSubstr("vaddps")));
  EXPECT_THAT(page, HasSubstr("2026-12-04 18:00"));
}

TEST(VerdictPage, ShowsBothGatesAndWhatTheyRestOn) {
  const std::string fast = RenderVerdictPage(SampleVerdict(Data(), "814b70bddabf"), {});
  for (const char* each :
       {"Gate 1: correctness", "Gate 2: speed", "Pairs against eager", "id=\"pairs0-title\"",
        "id=\"roofline-title\"", "/api/verdicts/814b70bddabf",
        "assay rejudge https://assay.example.org/verdicts/814b70bddabf"})
    EXPECT_THAT(fast, HasSubstr(each));
  const std::string wrong = RenderVerdictPage(SampleVerdict(Data(), "531b5592ba27"), {});
  EXPECT_THAT(wrong, HasSubstr("First wrong element"));
  EXPECT_THAT(wrong, HasSubstr("not run"));
}

TEST(ComparePage, TextStaysText) {
  ExpectTextStaysText([](const std::string& text) {
    CompareView view;
    view.a.verdict = view.b.verdict = VerdictOf(text);
    view.a.author = view.b.author = text;
    view.may_ask = true;
    return RenderComparePage(view, FrameFor(text));
  });
}

TEST(ComparePage, SaysWhetherADifferenceIsReal) {
  CompareView view{SampleVerdict(Data(), "9411ebf33f66"), SampleVerdict(Data(), "814b70bddabf")};
  std::string page = RenderComparePage(view, {});
  EXPECT_THAT(page, HasSubstr("Not paired yet"));
  EXPECT_THAT(page, HasSubstr("do not overlap"));
  EXPECT_THAT(page, HasSubstr("--against"));
  EXPECT_THAT(page, HasSubstr("class=\"add\""));
  view.paired = ResultOf(1.001, "tie");
  page = RenderComparePage(view, {});
  EXPECT_THAT(page, HasSubstr("A tie"));
  EXPECT_THAT(page, Not(HasSubstr("Not paired yet")));
}

TEST(ComparePage, DoesNotCompareOtherQuestions) {
  EXPECT_THAT(UnpairedText(SampleVerdict(Data(), "531b5592ba27").verdict,
                           SampleVerdict(Data(), "814b70bddabf").verdict),
              HasSubstr("different problems"));
}

TEST(ComparePage, ClaimsNoOverlapWithoutAnInterval) {
  Verdict a = SampleVerdict(Data(), "9411ebf33f66").verdict;
  BaselineResult& one_pair = a.speed->baselines.at(a.speed->headline);
  one_pair.ci_low = one_pair.ci_high = 0;
  const std::string text = UnpairedText(a, SampleVerdict(Data(), "814b70bddabf").verdict);
  EXPECT_THAT(text, HasSubstr("too few pairs for an interval"));
  EXPECT_THAT(text, Not(HasSubstr("overlap")));
}

TEST(VerdictPage, AnOpenDecisionIsNoFailedGate) {
  VerdictView view = SampleVerdict(Data(), "9411ebf33f66");
  view.verdict.speed->passed = false;
  EXPECT_THAT(RenderVerdictPage(view, {}), HasSubstr("Gate 2: speed <span class=\"badge bad\">"));
  view.verdict.outcome = Outcome::kUnsettled;
  EXPECT_THAT(RenderVerdictPage(view, {}), HasSubstr("Gate 2: speed <span class=\"badge warn\">"));
}

TEST(JobPages, TextStaysText) {
  ExpectTextStaysText([](const std::string& text) {
    Job job;
    job.id = 1;
    job.author.name = job.problem = job.size = job.name = job.runner = job.failure = text;
    job.verdict = text;
    job.set = {{text, text}};
    job.state = JobState::kFailed;
    JobView view{job, {{1, text, text, text, text, 0.5}}, true};
    JobsView list;
    list.jobs = {job};
    list.older_than = text;
    return RenderJobPage(view, FrameFor(text)) + RenderJobsPage(list, FrameFor(text));
  });
}

TEST(JobPage, TellsThePlaceAndFollowsEventsUntilTheEnd) {
  JobView view;
  view.job.id = 7;
  view.job.place = 3;
  std::string page = RenderJobPage(view, {});
  EXPECT_THAT(page, HasSubstr("2 jobs ahead of it"));
  EXPECT_THAT(page, HasSubstr("data-events=\"/api/jobs/7/events?after=0\""));
  EXPECT_THAT(page, HasSubstr("<noscript><meta http-equiv=\"refresh\""));
  view.job.state = JobState::kDone;
  view.job.verdict = "814b70bddabf";
  page = RenderJobPage(view, {});
  EXPECT_THAT(page, Not(HasSubstr("data-events=\"/api")));
  EXPECT_THAT(page, Not(HasSubstr("http-equiv=\"refresh\"")));
}

TEST(RunPage, TextStaysText) {
  ExpectTextStaysText([](const std::string& text) {
    RunView view;
    view.settings.id = view.settings.problem = view.settings.strategy = text;
    view.settings.proposer = view.settings.from_name = view.began = text;
    RunNode node;
    node.key = node.lineage.note = node.lineage.operation = node.outcome = node.verdict = text;
    node.lineage.parents = {"none", text + "2"};
    node.ratio = {2, 1.9, 2.1};
    view.nodes = {node};
    return RenderRunPage(view, FrameFor(text)) + RenderRunsPage({view}, FrameFor(text));
  });
}

TEST(RunPage, KeepsALongChainShallow) {
  RunView view;
  for (int i = 0; i < 400; ++i) {
    RunNode node;
    node.key = "judge/" + std::to_string(i);
    node.outcome = "faster";
    node.ratio = {1.0 + i, 1, 2};
    if (i > 0) node.lineage.parents = {"judge/" + std::to_string(i - 1)};
    view.nodes.push_back(std::move(node));
  }
  const std::string page = RenderRunPage(view, {});
  size_t lists = 0, items = 0;
  for (size_t at = 0; (at = page.find("<ol", at)) != std::string::npos; ++at) ++lists;
  for (size_t at = 0; (at = page.find("<li><span class=\"mono\">", at)) != std::string::npos; ++at)
    ++items;
  EXPECT_LE(lists, 50u);
  EXPECT_EQ(items, 400u);
}

TEST(RunPage, CountsARecordedSearch) {
  const auto run = SampleRun(Data());
  ASSERT_TRUE(run) << run.error().message;
  const RunFigures figures = FiguresOf(*run);
  EXPECT_GT(figures.judged, 30);
  ASSERT_NE(figures.best, nullptr);
  EXPECT_GT(figures.best->ratio.value, 1);
  EXPECT_GT(figures.per_minute, 0);
}

TEST(OtherPages, TextStaysText) {
  ExpectTextStaysText([](const std::string& text) {
    MachineView machine;
    machine.runners = {{text, text, text, text, false, text, 0}};
    MachineProfile profile;
    profile.cpu = text;
    profile.ceilings = {{1, 1e9, 1e9, 1e9, {{text, 1e9}}, {}}};
    GpuCeilings gpu;
    gpu.name = gpu.architecture = text;
    gpu.traffic[text] = {1, 1, text};
    gpu.notes = {text};
    profile.gpus = {gpu};
    machine.profiles = {profile};
    SubmitView submit{{{text, {text}}}, text, text, text, text, text, text};
    JoinView join{text, text, text, text, false};
    return RenderMachinePage(machine, FrameFor(text)) + RenderSubmitPage(submit, FrameFor(text)) +
           RenderLoginPage(text, FrameFor(text)) + RenderJoinPage(join, FrameFor(text)) +
           RenderWelcomePage(text, text, FrameFor(text)) +
           RenderErrorPage({404, text, 3}, FrameFor(text));
  });
}

TEST(SubmitPage, GivesTheSourceBackAsItWasSent) {
  SubmitView view;
  view.source = "\n\tint a;\n  </textarea>\n";
  view.fault = "The queue is full.";
  const std::string page = RenderSubmitPage(view, FrameFor("ada"));
  EXPECT_THAT(page, HasSubstr(">\n\n\tint a;\n  &lt;/textarea&gt;\n</textarea>"));
  EXPECT_THAT(page, HasSubstr("role=\"alert\""));
}

TEST(LadderPage, ShowsEachRungWithItsPrediction) {
  const auto views = SampleLadder(Data(), "softmax-ladder/ladder.toml", "h100");
  ASSERT_TRUE(views) << views.error().message;
  const std::string page = RenderLadderPage(*views, {});
  EXPECT_THAT(page, HasSubstr("<code>01_thread_row</code>"));
  EXPECT_THAT(page, HasSubstr("id=\"ladder0-title\""));
  // The page's own style has the chart's classes: the policy allows no other.
  EXPECT_EQ(page.find("<style", page.find("</style>")), std::string::npos);
}

TEST(BoardUrl, LeavesOutWhatIsAsAtFirst) {
  EXPECT_EQ(BoardUrl({}), "/");
  BoardFilter filter;
  filter.p = 1.5;
  filter.problem = "a&b";
  filter.by = BoardSide::kMachine;
  EXPECT_EQ(BoardUrl(filter), "/?p=1.5&problem=a%26b&by=machine");
}

TEST(BoardPage, WorksWithoutScripts) {
  const std::string page = RenderBoardPage(SampleBoard(Data(), {}), {});
  EXPECT_THAT(page, HasSubstr("<form data-at-once action=\"/\">"));
  EXPECT_THAT(page, HasSubstr("<button"));
  EXPECT_THAT(page, HasSubstr("href=\"/?p=1.5\""));
  EXPECT_THAT(page, HasSubstr("fast_p as a table"));
}

TEST(EmptyViews, AreStillPages) {
  for (const std::string& page :
       {RenderBoardPage(BoardView(), {}), RenderProblemsPage(RenderProblems({}, ""), {}),
        RenderProblemPage("", RenderProblem({}), {}), RenderVerdictPage({}, {}),
        RenderComparePage({}, {}), RenderJobsPage({}, {}), RenderJobPage({}, {}),
        RenderRunsPage({}, {}), RenderRunPage({}, {}), RenderMachinePage({}, {}),
        RenderLaddersPage({}, {}), RenderSubmitPage({}, {})}) {
    EXPECT_THAT(page, HasSubstr("<h1"));
    EXPECT_THAT(page, HasSubstr("</html>"));
  }
}

}  // namespace
}  // namespace assay
