#include "search/evolution.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "search/search_testing.h"

namespace assay {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// A candidate is a number; the prompt names the parents' numbers.
class NumberWriter : public Writer {
 public:
  Prompt Ask(const Question& question) const override {
    Prompt prompt;
    prompt.text = question.operation;
    for (const Tried* parent : question.parents) prompt.text += " " + parent->source;
    if (!question.idea.empty()) prompt.text += " " + question.idea;
    if (question.origin != nullptr) prompt.text += " from " + question.origin->key;
    for (const Tried* tried : question.tried)
      if (tried->idea.contains("without")) prompt.text += "\n" + tried->idea;
    return prompt;
  }
  std::expected<std::string, std::string> ReadCode(const Answer& answer,
                                                   const std::string&) const override {
    if (answer.text == "nonsense") return std::unexpected("there is no code");
    return answer.text;
  }
  std::string ReadIdea(const Answer& answer) const override {
    if (answer.text == "nonsense") return "";
    return answer.reasoning.empty() ? answer.text : answer.reasoning;  // stands before the code
  }
  std::string CandidateName() const override { return "candidate.cpp"; }
};

double ValueOf(const std::string& source) {
  const double number = std::stod(source);
  return std::isnan(number) ? 1 : number;
}

struct Ran {
  std::vector<std::string> asked;  // prompts
  std::map<std::string, int> operations;
  double best = 0;
  int judged = 0;
  std::vector<std::string> judged_by;  // "port 1.2"
  std::vector<std::string> ablated;    // keys of parents
  std::vector<std::string> notes;      // of ablations that were judged
};

// A model that changes what it is shown a little; a ratio above 4 is wrong, as are some others.
Ran Evolve(const EvolutionTerms& terms, bool nonsense = false, int inject_at = -1) {
  const NumberWriter writer;
  Evolution evolution(writer, terms);
  Ran ran;
  std::deque<Step> waiting;
  std::set<std::string> keys;
  const auto take = [&](std::vector<Step> steps) {
    for (Step& step : steps) {
      EXPECT_TRUE(keys.insert(step.key).second) << step.key;
      for (const std::string& parent : step.lineage.parents) EXPECT_TRUE(keys.contains(parent));
      waiting.push_back(std::move(step));
    }
  };
  take(evolution.Begin());
  while (!waiting.empty()) {
    EXPECT_LE(std::ssize(waiting), terms.width);
    const Step step = waiting.front();
    waiting.pop_front();
    if (step.kind == StepKind::kJudge) {
      const double number = std::stod(step.source);
      const bool fails = std::isnan(number) || number > 4 || std::fmod(number * 100, 7) < 1;
      ran.best = std::max(ran.best, fails ? 0 : number);
      ++ran.judged;
      ran.judged_by.push_back(step.lineage.operation + " " + step.source);
      if (step.lineage.operation == "ablate") ran.notes.push_back(step.lineage.note);
      take(evolution.Heard(
          step, {std::nullopt, VerdictWith(fails ? 0 : number, step.key), std::nullopt, ""}));
      continue;
    }
    ran.asked.push_back(step.prompt.text);
    ++ran.operations[step.lineage.operation];
    Answer answer;
    StepRandom random(step.prompt.seed, "model");
    const size_t space = step.prompt.text.find(' ');
    const std::string& operation = step.lineage.operation;
    double number = 0.5 + 0.7 * random.Unit();
    if (operation == "ablate") {
      ran.ablated.push_back(step.lineage.parents.front());
      answer.reasoning = "unrolled loops";
    }
    if (operation != "idea" && operation != "realise")
      number = ValueOf(step.prompt.text.substr(space + 1)) * (0.85 + 0.3 * random.Unit());
    answer.text = nonsense              ? "nonsense"
                  : operation == "idea" ? "tiles"
                                        : fmt::format("{:.3f}", number);
    take(evolution.Heard(step, {answer, std::nullopt, std::nullopt, ""}));
    if (inject_at == std::ssize(ran.asked)) evolution.Steered("inject", "keep rows in registers");
  }
  return ran;
}

TEST(Evolution, ClimbsWithAllOperations) {
  const Ran ran = Evolve({200, 4, 3, 2, 10, true, false, 7});
  EXPECT_EQ(ran.asked.size(), 200u);
  EXPECT_GT(ran.best, 2);
  for (const char* operation : {"idea", "realise", "refine", "repair", "cross"})
    EXPECT_GT(ran.operations.at(operation), 3) << operation;
  EXPECT_EQ(ran.operations.at("realise"), 2 * ran.operations.at("idea"));
}

TEST(Evolution, TheSameResultsLeadToTheSameQuestions) {
  EXPECT_EQ(Evolve({80, 4, 3, 2, 10, true, false, 7}).asked,
            Evolve({80, 4, 3, 2, 10, true, false, 7}).asked);
  EXPECT_NE(Evolve({80, 4, 3, 2, 10, true, false, 7}).asked,
            Evolve({80, 4, 3, 2, 10, true, false, 8}).asked);
}

TEST(Evolution, WithoutIslandsNothingIsCrossed) {
  const Ran ran = Evolve({200, 4, 1, 2, 10, false, false, 7});
  EXPECT_FALSE(ran.operations.contains("cross"));
  EXPECT_GT(ran.operations.at("idea"), 3);
  EXPECT_GT(ran.best, 1);
}

TEST(Evolution, GreedyItRefinesTheBestAlone) {
  const Ran ran = Evolve({200, 4, 1, 2, 10, false, true, 7});
  EXPECT_LT(ran.operations.at("idea"), 10);
  EXPECT_GT(ran.operations.at("refine"), 150);
  EXPECT_GT(ran.best, 1);
}

TEST(Evolution, WhatACandidateLeavesOpenIsTuned) {
  const NumberWriter writer;
  EvolutionTerms terms{40, 1, 1, 1, 3, true, false, 7};
  Evolution evolution(writer, terms);
  Answer answer;
  std::vector<std::string> judged;
  std::deque<Step> waiting;
  for (Step& step : evolution.Begin()) waiting.push_back(std::move(step));
  while (!waiting.empty()) {
    const Step step = waiting.front();
    waiting.pop_front();
    StepResult result;
    if (step.kind == StepKind::kPropose) {
      answer.text =
          step.lineage.operation == "idea" ? "tiles" : "//! tune A = 1 2 4\nint kernel;\n";
      result.answer = answer;
    } else {
      judged.push_back(fmt::format("{} {}", step.lineage.operation, step.lineage.note));
      const bool tuned = step.source.contains("tune A = 4");
      result.verdict = VerdictWith(tuned ? 2 : 1.2, step.key);
      EXPECT_FALSE(tuned && step.source.contains("1 2")) << step.source;
    }
    for (Step& more : evolution.Heard(step, result)) waiting.push_back(std::move(more));
  }
  EXPECT_THAT(judged, Contains("tune A=2"));
  EXPECT_THAT(judged, Contains("tune A=4"));
}

TEST(Evolution, AblationTakesATrickOutOfEachEliteOnce) {
  EvolutionTerms terms{200, 4, 3, 2, 10, true, false, 7};
  terms.ablates = true;
  const Ran ran = Evolve(terms);
  EXPECT_GT(ran.ablated.size(), 3u);
  EXPECT_EQ(std::set(ran.ablated.begin(), ran.ablated.end()).size(), ran.ablated.size());
  for (const std::string& parent : ran.ablated) EXPECT_THAT(parent, HasSubstr("judge/"));
  // Its worth is told: what it was before, and by the verdict what it is without.
  ASSERT_FALSE(ran.notes.empty());
  EXPECT_THAT(ran.notes.front(),
              ::testing::MatchesRegex("judge/[0-9]+ without a trick, [0-9.]+x before: unrolled "
                                      "loops"));
  EXPECT_THAT(ran.asked.back(), HasSubstr(ran.notes.front()));
  EXPECT_GT(ran.best, 2);
}

TEST(Evolution, AKernelOfElsewhereIsJudgedAsItStandsAndThenFitted) {
  EvolutionTerms terms{60, 4, 3, 2, 10, true, false, 7};
  Tried there;
  there.key = "verdict1";
  there.source = "1.5";
  there.idea = "verdict1 as it stands";
  there.verdict = VerdictWith(1.9, "verdict1");
  terms.ports = {there, there};
  terms.ports[1].source = "nan";  // it does not run here
  const Ran ran = Evolve(terms);
  EXPECT_EQ(ran.judged_by[0], "port 1.5");
  EXPECT_EQ(ran.judged_by[1], "port nan");
  EXPECT_EQ(ran.operations.at("port"), 4);  // two questions on each
  EXPECT_THAT(ran.asked, Contains(HasSubstr("port 1.5 from verdict1")));
  EXPECT_GT(ran.best, 1.5);
}

TEST(Evolution, NonsenseEndsIt) {
  const Ran ran = Evolve({50, 4, 3, 2, 10, true, false, 7}, true);
  EXPECT_EQ(ran.asked.size(), 50u);
  EXPECT_EQ(ran.judged, 0);
}

TEST(Evolution, AnInjectedIdeaIsRealised) {
  EXPECT_THAT(Evolve({60, 4, 3, 2, 10, true, false, 7}, false, 20).asked,
              Contains(HasSubstr("realise keep rows in registers")));
}

}  // namespace
}  // namespace assay
