#include "search/environment.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <set>

#include "problem/gradients.h"
#include "search/search_testing.h"
#include "search/verdict_cache.h"

namespace assay {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Judges by the source: "fast" 2x, "slow" 0.5x, "open" stays open, "lost" fails; else it is wrong.
class FakeJudge : public EnvJudge {
 public:
  std::vector<std::string> judged;  // sources
  bool gradients = false;           // of the newest task

  std::vector<Result<Verdict>> Judge(std::span<const EnvTask> tasks, StopToken) override {
    std::vector<Result<Verdict>> verdicts;
    for (const EnvTask& task : tasks) {
      const std::string& source = task.source.content;
      judged.push_back(source);
      gradients = task.terms.problem.gradients;
      if (source.contains("lost"))
        verdicts.push_back(EnvironmentError("the worker of cpu was killed by signal 9"));
      else if (source.contains("open"))
        verdicts.push_back(SampleVerdict(Outcome::kUnsettled));
      else
        verdicts.push_back(VerdictWith(source.contains("fast")   ? 2
                                       : source.contains("slow") ? 0.5
                                                                 : 0,
                                       "id"));
    }
    return verdicts;
  }
  Result<std::vector<std::string>> Describe(const AskedTerms& terms, StopToken) override {
    if (terms.problem.size == "huge") return UsageError("no such size");
    return std::vector<std::string>{"input x float32[2, 3]", "output out float32[2, 3]"};
  }
};

class EnvironmentTest : public testing::Test {
 protected:
  using Json = nlohmann::json;

  EnvironmentTest()
      : templates_(PromptTemplates::Load(ASSAY_SOURCE_DIRECTORY "/prompts", "").value()) {
    terms_.problems = {{"softmax", "", {}}, {"gelu", "", {}}, {"matmul", "", {}}};
    terms_.turns = 3;
  }
  Environment& Env() {
    if (!environment_)
      environment_.emplace(
          EnvironmentParts{templates_, judge_,
                           [](const ProblemChoice& choice) -> Result<ProblemRequest> {
                             ProblemRequest problem;
                             problem.name = choice.problem;
                             problem.size = choice.size;
                             problem.source = "class Model: ...  # " + choice.problem + "\n";
                             if (choice.gradients) AddGradients(&problem);
                             return problem;
                           },
                           [](const CandidateSource&) { return NativeCode(); },
                           [this](const JudgedSource& judged, const Verdict& verdict) {
                             recorded_.push_back("verdict " + verdict.id + " " + judged.problem);
                           },
                           [this](const NewRecord& record) {
                             EXPECT_EQ(record.facts.kind, RecordKind::kEpisode);
                             const Json content = Json::parse(record.content);
                             recorded_.push_back(content["what"].get<std::string>() + " " +
                                                 record.facts.name);
                             last_ = content;
                           }},
          terms_);
    return *environment_;
  }
  Json Ask(const Json& request) { return Json::parse(Env().Handle(request.dump(), {})); }
  std::string Reset(const std::string& problem = "softmax") {
    return Ask({{"request", "reset"}, {"problem", problem}})["episode"];
  }
  Json Step(const std::string& episode, const std::string& word) {
    return Ask({{"request", "step"}, {"episode", episode}, {"text", Answer(word)}});
  }
  static std::string Answer(const std::string& word) {
    return "Here it is.\n```cpp\n#include <assay/kernel.h>\nASSAY_KERNEL() {}  // " + word +
           "\n```\n";
  }
  static std::string Prompt(const Json& event) { return event["messages"].back()["content"]; }

  const PromptTemplates templates_;
  EnvironmentTerms terms_;
  FakeJudge judge_;
  std::vector<std::string> recorded_;
  Json last_;  // content of the newest record of an episode
  std::optional<Environment> environment_;
};

TEST_F(EnvironmentTest, AnEpisodeGoesFromARepairToAWin) {
  const Json begun = Ask({{"id", "1"}, {"request", "reset"}, {"problem", "softmax"}});
  EXPECT_EQ(begun["id"], "1");
  EXPECT_EQ(begun["event"], "episode");
  EXPECT_EQ(begun["turn"], 0);
  EXPECT_THAT(Prompt(begun),
              AllOf(HasSubstr("Write a kernel"), HasSubstr("# softmax"),
                    HasSubstr("input x float32[2, 3]"), HasSubstr("Answers left: 3")));
  const std::string episode = begun["episode"];
  const Json wrong = Step(episode, "wrong");
  EXPECT_EQ(wrong["event"], "step");
  EXPECT_EQ(wrong["reward"], 0);
  EXPECT_EQ(wrong["rewards"]["ran"], true);
  EXPECT_EQ(wrong["rewards"]["correct"], false);
  EXPECT_EQ(wrong["done"], false);
  EXPECT_THAT(Prompt(wrong),
              AllOf(HasSubstr("Repair it"), HasSubstr("// wrong"), HasSubstr("Verdict: wrong")));
  const Json slow = Step(episode, "slow");
  EXPECT_EQ(slow["rewards"]["speedup"], 0.5);
  EXPECT_THAT(Prompt(slow), AllOf(HasSubstr("Make it faster"), HasSubstr("// slow"),
                                  HasSubstr("Tried before"), HasSubstr("0.5x as fast as eager")));
  const Json fast = Step(episode, "fast");
  EXPECT_EQ(fast["reward"], 1);
  EXPECT_EQ(fast["outcome"], "faster");
  EXPECT_EQ(fast["done"], true);
  EXPECT_THAT(Step(episode, "fast")["message"], HasSubstr("is done"));
}

TEST_F(EnvironmentTest, AResetMayAskForGradients) {
  const Json plain = Ask({{"request", "reset"}, {"problem", "softmax"}});
  EXPECT_EQ(plain["problem"]["name"], "softmax");
  const Json begun = Ask({{"request", "reset"}, {"problem", "softmax"}, {"grad", true}});
  EXPECT_EQ(begun["problem"]["name"], "softmax_gradients");
  EXPECT_THAT(Prompt(begun), HasSubstr("Forward and backward are judged as one call"));
  EXPECT_EQ(Step(begun["episode"], "fast")["cached"], false);
  EXPECT_TRUE(judge_.gradients);
  // The same source under other terms is judged anew.
  EXPECT_EQ(Step(plain["episode"], "fast")["cached"], false);
  EXPECT_FALSE(judge_.gradients);
  EXPECT_THAT(Ask({{"request", "reset"}, {"problem", "softmax"}, {"grad", 1}})["message"],
              HasSubstr("'grad' is true or false"));
}

TEST_F(EnvironmentTest, AnEnvironmentOfGradientsGivesThemUnlessAResetSaysNo) {
  terms_.gradients = true;
  EXPECT_EQ(Ask({{"request", "reset"}, {"problem", "gelu"}})["problem"]["name"], "gelu_gradients");
  EXPECT_THAT(Ask({{"request", "reset"}, {"seed", 1}})["problem"]["name"].get<std::string>(),
              testing::EndsWith("_gradients"));
  EXPECT_EQ(Ask({{"request", "reset"}, {"problem", "gelu"}, {"grad", false}})["problem"]["name"],
            "gelu");
}

TEST_F(EnvironmentTest, WhatHappensIsRecorded) {
  terms_.id = "0123456789ab";
  const std::string episode = Reset();
  EXPECT_EQ(last_["problem"]["name"], "softmax");
  EXPECT_EQ(last_["environment"], "0123456789ab");
  Step(episode, "slow");
  EXPECT_EQ(last_["verdict"], "id");
  EXPECT_EQ(last_["reward"], 0);
  EXPECT_EQ(last_["answer"], Answer("slow"));
  EXPECT_EQ(last_["cached"], false);
  const std::string other = Ask({{"request", "fork"}, {"episode", episode}})["episode"];
  EXPECT_EQ(last_["from"], episode);
  Step(other, "slow");
  EXPECT_EQ(last_["cached"], true);
  Step(other, "lost");
  EXPECT_THAT(last_["failure"], HasSubstr("killed"));
  Ask({{"request", "step"}, {"episode", other}, {"text", "no code"}});
  EXPECT_EQ(last_["outcome"], "no_code");
  EXPECT_FALSE(last_.contains("verdict"));
  Ask({{"request", "close"}, {"episode", other}});
  EXPECT_THAT(recorded_, ElementsAre("reset e1", "verdict id softmax", "step e1", "fork e2",
                                     "step e2", "step e2", "step e2", "close e2"));
  // A refused request leaves nothing.
  Step("e9", "slow");
  EXPECT_EQ(recorded_.size(), 8u);
}

TEST_F(EnvironmentTest, AnAnswerWithoutCodeIsATurnThatEarnsNothing) {
  const std::string episode = Reset();
  const Json event = Ask({{"request", "step"}, {"episode", episode}, {"text", "I cannot."}});
  EXPECT_EQ(event["reward"], 0);
  EXPECT_EQ(event["outcome"], "no_code");
  EXPECT_EQ(event["turn"], 1);
  EXPECT_THAT(Prompt(event),
              AllOf(HasSubstr("had no code that can be used"), HasSubstr("Write a kernel")));
  EXPECT_TRUE(judge_.judged.empty());
}

TEST_F(EnvironmentTest, AFailureOfTheMachinesHasNoRewardAndTakesNoTurn) {
  const std::string episode = Reset();
  const Json lost = Step(episode, "lost");
  EXPECT_EQ(lost["reward"], nullptr);
  EXPECT_EQ(lost["rewards"], nullptr);
  EXPECT_THAT(lost["failure"].get<std::string>(), HasSubstr("killed by signal 9"));
  EXPECT_EQ(lost["turn"], 0);
  EXPECT_EQ(Step(episode, "fast")["turn"], 1);
}

TEST_F(EnvironmentTest, AVerdictThatStaysOpenHasNoRewardAndIsJudgedAgain) {
  const std::string episode = Reset();
  const Json open = Step(episode, "open");
  EXPECT_EQ(open["reward"], nullptr);
  EXPECT_EQ(open["rewards"]["correct"], true);
  EXPECT_EQ(open["turn"], 1);
  Step(episode, "open");
  EXPECT_EQ(judge_.judged.size(), 2u);
}

TEST_F(EnvironmentTest, AKnownSourceIsNotJudgedAgain) {
  EXPECT_EQ(Step(Reset(), "fast")["cached"], false);
  const Json again = Step(Reset(), "fast");
  EXPECT_EQ(again["cached"], true);
  EXPECT_EQ(again["reward"], 1);
  EXPECT_EQ(judge_.judged.size(), 1u);
  EXPECT_EQ(Step(Reset("gelu"), "fast")["cached"], false);  // another task
}

TEST_F(EnvironmentTest, ABatchIsJudgedTogether) {
  const std::string first = Reset(), second = Reset("gelu"), third = Reset();
  const Json event = Ask({{"request", "step"},
                          {"steps",
                           {{{"episode", first}, {"text", Answer("fast")}},
                            {{"episode", second}, {"text", "no code"}},
                            {{"episode", third}, {"text", Answer("fast")}}}}});
  ASSERT_EQ(event["steps"].size(), 3u);
  EXPECT_EQ(event["steps"][0]["reward"], 1);
  EXPECT_EQ(event["steps"][1]["outcome"], "no_code");
  EXPECT_EQ(event["steps"][2]["episode"], third);
  EXPECT_EQ(event["steps"][2]["reward"], 1);
  EXPECT_EQ(judge_.judged.size(), 1u);  // equal sources share a verdict
}

TEST_F(EnvironmentTest, ABadStepInABatchChangesNothing) {
  const std::string episode = Reset();
  const Json event = Ask(
      {{"request", "step"},
       {"steps",
        {{{"episode", episode}, {"text", Answer("fast")}}, {{"episode", "e99"}, {"text", "x"}}}}});
  EXPECT_EQ(event["event"], "error");
  EXPECT_THAT(event["message"].get<std::string>(), HasSubstr("no episode 'e99'"));
  EXPECT_EQ(Step(episode, "fast")["turn"], 1);
}

TEST_F(EnvironmentTest, AForkGoesOnByItself) {
  const std::string episode = Reset();
  Step(episode, "slow");
  const Json fork = Ask({{"request", "fork"}, {"episode", episode}});
  EXPECT_EQ(fork["turn"], 1);
  EXPECT_THAT(Prompt(fork), HasSubstr("// slow"));
  const std::string other = fork["episode"];
  EXPECT_NE(other, episode);
  EXPECT_EQ(Step(other, "fast")["turn"], 2);
  EXPECT_EQ(Step(episode, "wrong")["turn"], 2);
  EXPECT_EQ(Ask({{"request", "close"}, {"episode", other}})["event"], "closed");
  EXPECT_THAT(Step(other, "fast")["message"].get<std::string>(), HasSubstr("no episode"));
}

TEST_F(EnvironmentTest, TheSeedChoosesTheTaskAndNothingElse) {
  const auto problem = [&](const Json& seed) {
    return Ask({{"request", "reset"}, {"seed", seed}})["problem"]["name"].get<std::string>();
  };
  std::set<std::string> seen;
  for (int seed = 0; seed < 30; ++seed) {
    EXPECT_EQ(problem(seed), problem(std::to_string(seed)));
    seen.insert(problem(seed));
  }
  EXPECT_THAT(seen, ElementsAre("gelu", "matmul", "softmax"));
  const Json event = Ask({{"request", "reset"}, {"seed", 123456789}});
  EXPECT_THAT(event.dump(), Not(HasSubstr("123456789")));
}

TEST_F(EnvironmentTest, TheRewardFollowsItsFormula) {
  terms_.rewards.formula = RewardFormula::kKevin;
  EXPECT_EQ(Step(Reset(), "slow")["reward"], 0.8);
}

TEST_F(EnvironmentTest, BadRequestsAreNamedAndChangeNothing) {
  const auto message = [&](const std::string& line) {
    const Json event = Json::parse(Env().Handle(line, {}));
    EXPECT_EQ(event["event"], "error");
    return event["message"].get<std::string>();
  };
  EXPECT_THAT(message("nonsense"), HasSubstr("JSON object"));
  EXPECT_THAT(message("[]"), HasSubstr("JSON object"));
  EXPECT_THAT(message(R"({"request": "reset", "id": 7})"), HasSubstr("'id'"));
  EXPECT_THAT(message(R"({"request": "rest"})"), HasSubstr("did you mean 'reset'?"));
  EXPECT_THAT(message(R"({"request": "reset", "sead": 1})"), HasSubstr("did you mean 'seed'?"));
  EXPECT_THAT(message(R"({"request": "reset", "seed": -1})"), HasSubstr("'seed'"));
  EXPECT_THAT(message(R"({"request": "reset", "problem": "x", "size": "huge"})"),
              HasSubstr("no such size"));
  EXPECT_THAT(message(R"({"request": "step", "text": "x"})"), HasSubstr("'episode' is missing"));
  EXPECT_THAT(message(R"({"request": "step", "steps": 3})"), HasSubstr("'steps' is a list"));
  EXPECT_THAT(message(R"({"request": "step", "steps": [1]})"), HasSubstr("a step is an object"));
  EXPECT_FALSE(Env().ended());
  EXPECT_EQ(Ask({{"request", "shutdown"}})["event"], "ended");
  EXPECT_TRUE(Env().ended());
}

TEST(VerdictCache, KeepsTheNewestAndNoOpenOnes) {
  VerdictCache cache(2);
  cache.Keep("open", SampleVerdict(Outcome::kUnsettled));
  EXPECT_EQ(cache.Find("open"), nullptr);
  for (const char* key : {"a", "b", "a", "c"}) cache.Keep(key, SampleVerdict(Outcome::kFaster));
  EXPECT_EQ(cache.Find("a"), nullptr);
  ASSERT_NE(cache.Find("b"), nullptr);
  EXPECT_TRUE(cache.Find("c")->samples.empty());
  EXPECT_NE(VerdictCache::Key("a", "bc", "", ""), VerdictCache::Key("ab", "c", "", ""));
}

}  // namespace
}  // namespace assay
