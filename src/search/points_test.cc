#include "search/points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

TuneSpace SpaceOf(const std::string& lines) { return *ParseTuneSpace(lines, "cpp"); }

// 6 x 5 x 5 x 4 x 4 = 2400 points, of which some are forbidden.
TuneSpace LargeSpace() {
  return SpaceOf(
      "//! tune A = 16 1 2 4 8 32\n//! tune B = 4 8 16 32 64\n//! tune C = 1 2 3 4 5\n"
      "//! tune D = 0 1 2 3\n//! tune E = 100 200 400 800\n//! require A * C <= 100\n");
}

// A ratio with a ridge, a trap and failures: the best of it is 2.0 at A=8 B=32 C=3 D=2 E=400.
double RatioAt(const TuneSpace& space, const TunePoint& point) {
  auto values = ValuesAt(space, point);
  const double a = std::log2(static_cast<double>(values["A"])) - 3;
  const double b = std::log2(static_cast<double>(values["B"])) - 5;
  const double c = static_cast<double>(values["C"]) - 3, d = static_cast<double>(values["D"]) - 2;
  const double e = std::log2(static_cast<double>(values["E"]) / 400);
  if (values["D"] == 3 && values["C"] == 5) return 0;
  return 2 *
         std::exp(-0.12 * a * a - 0.1 * (b - 0.5 * a) * (b - 0.5 * a) - 0.05 * c * c - 0.1 * d * d -
                  0.04 * e * e) *
         (values["A"] == 1 ? 1.3 : 1.0);
}

struct Run {
  double best = 0;
  std::vector<TunePoint> points;
};

Run Tune(const std::string& strategy, uint64_t seed, size_t count, size_t width = 4) {
  const TuneSpace space = LargeSpace();
  TunerKnowledge known(space);
  const Chooser choose = MakeChooser(strategy).value();
  Run run;
  std::vector<TunePoint> pending;
  for (size_t i = 0; i < count; ++i) {
    StepRandom random(seed, fmt::format("judge/{}", i));
    const auto choice = choose(known, random);
    if (!choice) break;
    EXPECT_TRUE(known.IsNew(choice->point));
    for (const size_t parent : choice->parents) EXPECT_LT(parent, known.trials().size());
    known.Ask(choice->point);
    pending.push_back(choice->point);
    run.points.push_back(choice->point);
    if (pending.size() < width && i + 1 < count) continue;
    for (const TunePoint& point : pending) {
      known.Tell(point, RatioAt(space, point));
      run.best = std::max(run.best, known.trials().back().ratio);
    }
    pending.clear();
  }
  return run;
}

double MedianBest(const std::string& strategy, size_t count) {
  std::vector<double> best;
  for (uint64_t seed = 1; seed <= 9; ++seed) best.push_back(Tune(strategy, seed, count).best);
  std::sort(best.begin(), best.end());
  return best[best.size() / 2];
}

TEST(TunerPoints, LearningBeatsChance) {
  // 5% of the points.
  const double by_chance = MedianBest("sample", 120);
  for (const char* strategy : {"refine", "evolve", "surrogate"}) {
    const double best = MedianBest(strategy, 120);
    EXPECT_GE(best, by_chance) << strategy;
    EXPECT_GE(best, 0.95 * 2) << strategy;
  }
}

TEST(TunerPoints, TheSameSeedAsksForTheSame) {
  for (const char* strategy : {"sample", "refine", "evolve", "surrogate", "exhaustive"})
    EXPECT_EQ(Tune(strategy, 3, 40).points, Tune(strategy, 3, 40).points) << strategy;
  EXPECT_NE(Tune("evolve", 3, 40).points, Tune("evolve", 4, 40).points);
}

TEST(TunerPoints, EachPointOnceThenNothing) {
  const TuneSpace space = SpaceOf("//! tune A = 2 1 3 4\n//! tune B = 1 2 3\n//! require A != B\n");
  for (const char* strategy : {"sample", "refine", "evolve", "surrogate", "exhaustive"}) {
    TunerKnowledge known(space);
    const Chooser choose = MakeChooser(strategy).value();
    std::set<TunePoint> points;
    for (int i = 0;; ++i) {
      StepRandom random(1, fmt::format("{}", i));
      const auto choice = choose(known, random);
      if (!choice) break;
      EXPECT_TRUE(Allows(space, choice->point));
      EXPECT_TRUE(points.insert(choice->point).second) << strategy;
      known.Ask(choice->point);
      known.Tell(choice->point, i % 3 == 0 ? 0 : 1 + 0.1 * i);
    }
    EXPECT_EQ(points.size(), 9u) << strategy;
  }
}

TEST(TunerPoints, NothingIsLearntWhereNothingRuns) {
  const TuneSpace space = LargeSpace();
  for (const char* strategy : {"refine", "evolve", "surrogate"}) {
    TunerKnowledge known(space);
    const Chooser choose = MakeChooser(strategy).value();
    for (int i = 0; i < 40; ++i) {
      StepRandom random(1, fmt::format("{}", i));
      const auto choice = choose(known, random);
      ASSERT_TRUE(choice) << strategy;
      known.Ask(choice->point);
      known.Tell(choice->point, 0);
    }
  }
}

TEST(TunerPoints, AnUnknownStrategyIsNamed) {
  EXPECT_THAT(MakeChooser("magic").error().message, ::testing::HasSubstr("--strategy magic"));
}

TEST(TunerPoints, ForComparisonsParentsAreTheBestAloneOrTheNewest) {
  const TuneSpace space = LargeSpace();
  TunerKnowledge known(space);
  StepRandom random(3, "trials");
  for (int i = 0; i < 60; ++i) {
    const TunePoint point = *known.RandomPoint(random);
    known.Tell(point, i == 5 ? 3 : 1 + 0.001 * i);  // the best one is old
  }
  const Chooser greedy = MakeChooser("greedy").value(), forgets = MakeChooser("no-archive").value(),
                evolve = MakeChooser("evolve").value();
  bool evolve_knows_it = false;
  for (int i = 0; i < 50; ++i) {
    const Choice child = *greedy(known, random), forgot = *forgets(known, random),
                 knows = *evolve(known, random);
    EXPECT_EQ(child.parents, std::vector<size_t>{5});
    for (const size_t parent : forgot.parents) EXPECT_GE(parent, 36u);
    for (const size_t parent : knows.parents) evolve_knows_it |= parent == 5;
  }
  EXPECT_TRUE(evolve_knows_it);
}

}  // namespace
}  // namespace assay
