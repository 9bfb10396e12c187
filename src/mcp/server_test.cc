#include "mcp/server.h"

#include <gmock/gmock.h>

#include "mcp/server_testing.h"

namespace assay {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST_F(ServerTest, ListsProblems) {
  const McpJson result = CallTool("problem_list", {{"level", 2}})["result"];
  EXPECT_THAT(result["content"][0]["text"].get<std::string>(),
              HasSubstr("add_layer_norm (level 2"));
  for (const McpJson& problem : result["structuredContent"]["problems"])
    EXPECT_EQ(problem["level"], 2);
  EXPECT_THAT(CallTool("problem_list", {{"mechanism", "magic"}})["result"]["content"][0]["text"]
                  .get<std::string>(),
              HasSubstr("leave out level and mechanism"));
}

TEST_F(ServerTest, AProblemIsDescribedOnceByTheWorker) {
  worker_says_ = R"({"event":"description","signature":["input x float32[8, 64]",
                     "output y float32[8, 64]"]})";
  EXPECT_TRUE(CallTool("problem_get", {{"problem", "softmax"}, {"size", "tiny"}}).is_null());
  WorkEnds();
  const McpJson result = Said().back()["result"]["structuredContent"];
  EXPECT_EQ(asked_[0]["request"], "describe");
  EXPECT_THAT(result["entry"].get<std::string>(), HasSubstr("ASSAY_KERNEL"));
  EXPECT_THAT(result["task"].get<std::string>(), HasSubstr("torch.softmax"));
  EXPECT_FALSE(
      CallTool("problem_get", {{"problem", "softmax"}, {"size", "tiny"}})["result"].contains(
          "isError"));
  EXPECT_EQ(asked_.size(), 1u);
  EXPECT_EQ(desk_->jobs().busy(), false);
  EXPECT_THAT(CallTool("problem_get", {{"problem", "sofmax"}})["result"]["content"][0]["text"]
                  .get<std::string>(),
              HasSubstr("softmax"));
}

TEST_F(ServerTest, GradAsksForBackwardToo) {
  worker_says_ = R"({"event":"description","signature":["input x float32[8, 64]",
                     "input gradient_1 float32[8, 64]", "output y float32[8, 64]",
                     "output gradient_of_x float32[8, 64]"]})";
  McpJson problem = {{"problem", "softmax"}, {"size", "tiny"}, {"grad", true}};
  CallTool("problem_get", problem);
  WorkEnds();
  const McpJson native = Said().back()["result"]["structuredContent"];
  EXPECT_EQ(asked_[0]["terms"]["gradients"], true);
  EXPECT_EQ(native["problem"], "softmax_gradients");
  EXPECT_THAT(native["entry"].get<std::string>(), HasSubstr("gradient_1"));
  EXPECT_THAT(native["reference"].get<std::string>(), Not(HasSubstr("assay_host")));
  EXPECT_THAT(native["task"].get<std::string>(), HasSubstr("Forward and backward"));
  EXPECT_THAT(native["next"].get<std::string>(), HasSubstr("with grad"));
  problem["form"] = "python";
  EXPECT_THAT(CallTool("problem_get", problem)["result"]["structuredContent"]["entry"],
              HasSubstr("forward(self, x)"));
  McpJson kernel = Kernel(0);
  kernel["grad"] = true;
  WorkerGives(Outcome::kCorrect);
  for (const char* tool : {"kernel_check", "kernel_judge"}) {
    CallTool(tool, kernel);
    WorkEnds();
    EXPECT_EQ(asked_.back()["terms"]["gradients"], true) << tool;
  }
  kernel["grad"] = "yes";
  EXPECT_THAT(CallTool("kernel_check", kernel)["result"]["content"][0]["text"],
              HasSubstr("'grad' must be a boolean"));
}

TEST_F(ServerTest, AJudgementIsAHandleAndThenAVerdict) {
  WorkerGives(Outcome::kFaster);
  const McpJson handle = CallTool("kernel_judge", Kernel(0))["result"]["structuredContent"];
  EXPECT_EQ(handle["state"], "running");
  EXPECT_EQ(handle["budget"]["calls_left"], 99);
  EXPECT_THAT(handle["next"].get<std::string>(), HasSubstr("job-00000001"));
  EXPECT_TRUE(CallTool("job_status", {{"job", "job-00000001"}, {"wait_s", 10}}).is_null());
  WorkEnds();
  const McpJson result = Said().back()["result"];
  EXPECT_EQ(result["structuredContent"]["outcome"], "faster");
  EXPECT_GT(result["structuredContent"]["speed"]["speedup"], 1.0);
  EXPECT_THAT(result["content"][0]["text"].get<std::string>(),
              AllOf(HasSubstr("certified"), HasSubstr("Budget left: 99 calls")));
  EXPECT_EQ(asked_[0]["request"], "judge");
  EXPECT_EQ(asked_[0]["candidates"][0]["source"], kSource);
  EXPECT_THAT(judged_, ElementsAre(kSource));
}

TEST_F(ServerTest, ACheckTimesNothingAndAWaitEnds) {
  WorkerGives(Outcome::kCorrect);
  EXPECT_TRUE(CallTool("kernel_check", Kernel(5)).is_null());
  now_ns_ = 6'000'000'000;
  seat_.newest = R"({"event":"progress","stage":"correctness","text":"draw 3","fraction":0.5})";
  Server().Tick();
  Server().Tick();
  const McpJson open = Said().back()["result"];
  EXPECT_EQ(open["structuredContent"]["state"], "running");
  EXPECT_FALSE(open.contains("isError"));
  WorkEnds();
  EXPECT_EQ(asked_[0]["request"], "check");
  const McpJson status =
      CallTool("job_status", {{"job", "job-00000001"}})["result"]["structuredContent"];
  EXPECT_EQ(status["outcome"], "correct");
  EXPECT_THAT(status["next"].get<std::string>(), HasSubstr("kernel_judge"));
}

TEST_F(ServerTest, EveryOutcomeNamesANextCall) {
  for (const OutcomeFacts& facts : AllOutcomes())
    EXPECT_THAT(NextAfter(SampleVerdict(facts.outcome)),
                testing::ContainsRegex("kernel_check|kernel_judge|profile"))
        << facts.name;
}

TEST_F(ServerTest, ABusyMachineIsNoReasonForALargerBudget) {
  Verdict verdict = SampleVerdict(Outcome::kUnsettled);
  BaselineResult& result = verdict.speed->baselines.at(verdict.speed->headline);
  result.why_unsettled = WhyUnsettled{UnsettledCause::kDisturbed};
  EXPECT_THAT(NextAfter(verdict), AllOf(HasSubstr("other programs"), Not(HasSubstr("budget"))));
  result.why_unsettled = WhyUnsettled{UnsettledCause::kNoise};
  EXPECT_THAT(NextAfter(verdict), HasSubstr("budget_s"));
}

// A client refused an answer whose interval was null.
TEST_F(ServerTest, AnOpenIntervalIsLeftOut) {
  Verdict verdict = SampleVerdict(Outcome::kFaster);
  verdict.speed->baselines.at(verdict.speed->headline).ci_high = INFINITY;
  const McpJson speed = VerdictFacts(verdict)["speed"];
  EXPECT_TRUE(speed.contains("ci_low"));
  EXPECT_FALSE(speed.contains("ci_high"));
}

TEST_F(ServerTest, TellsProgressToThoseWhoAsk) {
  McpJson request = Request(
      "tools/call",
      {{"name", "kernel_check"}, {"arguments", Kernel(60)}, {"_meta", {{"progressToken", "t"}}}});
  EXPECT_TRUE(Ask(request).is_null());
  seat_.newest = R"({"event":"progress","stage":"building","text":"compiling","fraction":0.1})";
  Server().Tick();
  Server().Tick();
  const auto said = Said();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0]["method"], "notifications/progress");
  EXPECT_EQ(said[0]["params"]["progressToken"], "t");
  EXPECT_EQ(said[0]["params"]["message"], "compiling");
}

TEST_F(ServerTest, ACancelledCallEndsItsJobAndHasNoAnswer) {
  EXPECT_TRUE(CallTool("kernel_check", Kernel(60), 5).is_null());
  Server().Take(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}})");
  EXPECT_TRUE(seat_.cancelled);
  seat_.Finish(Fail(ErrorKind::kInterrupted, "interrupted"));
  Server().Tick();
  EXPECT_TRUE(Said().empty());
  // A wait for a job that others may know leaves it.
  CallTool("kernel_judge", Kernel(0), 6);
  CallTool("job_status", {{"job", "job-00000002"}, {"wait_s", 60}}, 7);
  Server().Take(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}})");
  EXPECT_FALSE(seat_.cancelled);
  CallTool("job_status", {{"job", "job-00000002"}, {"cancel", true}}, 8);
  EXPECT_TRUE(seat_.cancelled);
  seat_.Finish(Fail(ErrorKind::kInterrupted, "interrupted"));
  Server().Tick();
  EXPECT_EQ(Said().back()["result"]["structuredContent"]["state"], "cancelled");
}

TEST_F(ServerTest, ErrorsSayWhatToDoNext) {
  const auto text = [](const McpJson& answer) {
    EXPECT_TRUE(answer["result"].value("isError", false));
    return answer["result"]["content"][0]["text"].get<std::string>();
  };
  EXPECT_EQ(CallTool("kernel_win", McpJson::object())["error"]["code"], kRpcInvalidParams);
  EXPECT_THAT(text(CallTool("kernel_check", {{"problem", "softmax"}})), HasSubstr("needs"));
  EXPECT_THAT(text(CallTool("job_status", {{"job", "job-ffffffff"}})),
              HasSubstr("there is no job-ffffffff"));
  EXPECT_THAT(text(CallTool("explain", {{"verdict", "0123456789ab"}})),
              HasSubstr("no verdict has the id"));
  worker_says_ = "";
  CallTool("kernel_judge", Kernel(0));
  EXPECT_THAT(text(CallTool("explain", {{"verdict", "job-00000001"}})), HasSubstr("job_status"));
  seat_.Finish(EnvironmentError("the worker of cpu was killed by signal 9"));
  Server().Tick();
  const McpJson failed = CallTool("job_status", {{"job", "job-00000001"}});
  EXPECT_THAT(text(failed), AllOf(HasSubstr("killed by signal 9"),
                                  HasSubstr("says nothing about the candidate")));
}

TEST_F(ServerTest, ABudgetCannotBeExceeded) {
  limits_ = {.calls = 1, .seconds = 100, .job_seconds = 7};
  WorkerGives(Outcome::kFaster);
  McpJson arguments = Kernel(0);
  arguments["budget_s"] = 3000;
  CallTool("kernel_judge", arguments);
  WorkEnds();
  EXPECT_EQ(seconds_given_, 7);
  EXPECT_EQ(asked_[0]["terms"]["budget_s"], 7.0);
  const McpJson refused = CallTool("profile", {{"problem", "softmax"}});
  EXPECT_TRUE(refused["result"]["isError"]);
  EXPECT_THAT(refused["result"]["content"][0]["text"].get<std::string>(),
              HasSubstr("1 of 1 calls"));
  EXPECT_FALSE(CallTool("explain", {{"verdict", "job-00000001"}})["result"].contains("isError"));
}

TEST_F(ServerTest, EveryCallIsRecorded) {
  WorkerGives(Outcome::kWrong);
  CallTool("problem_list", McpJson::object());
  CallTool("kernel_check", Kernel(0));
  WorkEnds();
  CallTool("compare", {{"a", "job-00000001"}});
  std::vector<std::string> whats;
  for (const NewRecord& record : records_) {
    if (record.facts.kind == RecordKind::kCandidate) continue;
    EXPECT_EQ(record.facts.kind, RecordKind::kNote);
    const McpJson content = McpJson::parse(record.content);
    EXPECT_EQ(content["session"], "mine");
    whats.push_back(content["tool"].get<std::string>() + " " + content["what"].get<std::string>());
  }
  EXPECT_THAT(whats,
              ElementsAre("problem_list answered", "kernel_check asked", "kernel_check answered",
                          "kernel_check began", "kernel_check ended", "compare refused"));
  EXPECT_EQ(records_[5].facts.outcome, "wrong");
  EXPECT_EQ(records_[5].source, kSource);
}

TEST_F(ServerTest, ComparesByMeasuring) {
  WorkerGives(Outcome::kFaster);
  CallTool("kernel_judge", Kernel(0));
  WorkEnds();
  McpJson other = Kernel(0);
  other["source"] = std::string(kSource) + "\n// wider\n";
  CallTool("kernel_judge", other);
  WorkEnds();
  const McpJson both = {{"a", "job-00000001"}, {"b", "job-00000002"}};
  const McpJson seen = CallTool("compare", both)["result"]["structuredContent"];
  EXPECT_TRUE(seen["same_question"]);
  EXPECT_THAT(seen["diff"].get<std::string>(), HasSubstr("+// wider"));
  EXPECT_FALSE(seen.contains("measured"));
  EXPECT_EQ(asked_.size(), 2u);
}

TEST_F(ServerTest, ComparesBackwardByMeasuringBackward) {
  Verdict verdict = SampleVerdict(Outcome::kFaster);
  verdict.problem.name += kGradientsSuffix;
  verdict.problem.signature.push_back("input gradient_1 float32[8, 64]");
  worker_says_ = VerdictToJson(verdict, -1);
  McpJson kernel = Kernel(0);
  kernel["grad"] = true;
  for (int i = 0; i < 2; ++i) {
    CallTool("kernel_judge", kernel);
    WorkEnds();
  }
  CallTool("compare", {{"a", "job-00000001"}, {"b", "job-00000002"}, {"measure", true}});
  WorkEnds();
  EXPECT_EQ(asked_.back()["terms"]["gradients"], true);
}

TEST_F(ServerTest, ProfilesAReferenceOrAKernel) {
  CallTool("profile", {{"problem", "softmax"}, {"size", "tiny"}, {"wait_s", 9}});
  WorkEnds();
  EXPECT_EQ(Said().back()["result"]["structuredContent"]["text"], "the hot spots of softmax");
  WorkerGives(Outcome::kTie);
  CallTool("profile", Kernel(9));
  WorkEnds();
  EXPECT_EQ(asked_[0]["terms"]["probe"], true);
  EXPECT_EQ(Said().back()["result"]["structuredContent"]["outcome"], "tie");
}

TEST_F(ServerTest, AProfileReadsCountersWhereNsightComputeIs) {
  const char* source = "//! launch k<<<1, 32>>>\n__global__ void k(float* y) {}\n";
  McpJson kernel = {{"problem", "softmax"}, {"language", "cuda"}, {"source", source}};
  device_ = "cuda";
  counters_ = true;
  WorkerGives(Outcome::kFaster);
  for (const char* tool : {"profile", "kernel_judge"}) {
    CallTool(tool, kernel);
    WorkEnds();
    EXPECT_EQ(asked_.back()["terms"].value("profile", false), std::string(tool) == "profile");
    EXPECT_EQ(asked_.back()["terms"].value("probe", false), false);
  }
}

TEST_F(ServerTest, AProfileReadsNoCountersWithoutNsightCompute) {
  const char* source = "//! launch k<<<1, 32>>>\n__global__ void k(float* y) {}\n";
  device_ = "cuda";
  WorkerGives(Outcome::kFaster);
  CallTool("profile", {{"problem", "softmax"}, {"language", "cuda"}, {"source", source}});
  WorkEnds();
  EXPECT_EQ(asked_.back()["terms"].value("profile", false), false);
}

TEST_F(ServerTest, ExplainsWithoutSeedsOrPrintedText) {
  for (const OutcomeFacts& facts : AllOutcomes()) {
    WorkerGives(facts.outcome);
    CallTool("kernel_judge", Kernel(0));
    WorkEnds();
    const std::string handle = fmt::format("job-{:08x}", handles_);
    const McpJson result = CallTool("explain", {{"verdict", handle}})["result"];
    EXPECT_EQ(result["structuredContent"]["meaning"], facts.meaning);
    EXPECT_THAT(result.dump(),
                Not(HasSubstr(fmt::format("{}", SampleVerdict(facts.outcome).seed))));
  }
}

TEST_F(ServerTest, AJobOfAnEarlierServerIsKnownFromTheArchive) {
  other_attempt_ = R"({"what":"ended","tool":"kernel_judge","state":"done","outcome":"faster",
                       "verdict":"0123456789ab"})";
  McpJson status = CallTool("job_status", {{"job", "job-ffffffff"}})["result"]["structuredContent"];
  EXPECT_EQ(status["outcome"], "faster");
  EXPECT_THAT(status["next"].get<std::string>(), HasSubstr("explain"));
  other_attempt_ = R"({"what":"began","tool":"kernel_judge"})";
  status = CallTool("job_status", {{"job", "job-ffffffff"}})["result"]["structuredContent"];
  EXPECT_EQ(status["state"], "cancelled");
}

TEST_F(ServerTest, TheEndOfTheClientCancelsAll) {
  CallTool("kernel_judge", Kernel(0));
  CallTool("kernel_judge", Kernel(60));
  Server().End();
  EXPECT_FALSE(Server().busy());
  EXPECT_EQ(McpJson::parse(records_.back().content)["state"], "cancelled");
}

TEST_F(ServerTest, GarbageLeavesTheServerAlive) {
  for (const char* line : {"", "{", "[]", "null", "{\"jsonrpc\":\"2.0\",\"id\":1}",
                           R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":3}})",
                           R"({"jsonrpc":"2.0","id":1,"method":"tools/call",
                               "params":{"name":"explain","arguments":[]}})",
                           R"({"jsonrpc":"2.0","id":1,"method":"no/such"})"}) {
    Server().Take(line);
    const auto said = Said();
    ASSERT_EQ(said.size(), 1u) << line;
    EXPECT_TRUE(said[0].contains("error")) << line;
  }
  Server().TakeTooLong();
  EXPECT_THAT(Said().back()["error"]["message"].get<std::string>(), HasSubstr("8 MiB"));
  EXPECT_EQ(Ask(Request("ping", McpJson::object()))["result"], McpJson::object());
}

}  // namespace
}  // namespace assay
