#include "serve/ranking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

using ::testing::ElementsAre;

class RankingTest : public ::testing::Test {
 protected:
  // An entry with an interval, certified up to its lower end.
  BoardRow& Add(const std::string& author, const std::string& problem, double low, double high) {
    BoardRow row;
    row.entry.sequence = static_cast<int64_t>(rows_.size()) + 1;
    row.entry.author = author;
    row.entry.problem = problem;
    row.entry.size = "small";
    row.entry.precision = "float32";
    row.entry.gpu_or_cpu = "cpu";
    row.entry.outcome = "faster";
    row.entry.ci_low = low;
    row.entry.ci_high = high;
    row.entry.speedup = (low + high) / 2;
    row.certified = low;
    row.stage = low > 1 ? Stage::kFaster : Stage::kCorrect;
    row.author = std::hash<std::string>()(author);
    row.problem = std::hash<std::string>()(problem);
    rows_.push_back(row);
    return rows_.back();
  }
  std::vector<std::string> Ranks(const BoardQuery& query = {}) {
    std::vector<std::string> lines;
    const auto boards = RankProblem(rows_, query);
    if (boards.empty()) return lines;
    for (const PlacedEntry& each : boards.front().entries)
      lines.push_back(std::to_string(each.rank) + " " + each.row.entry.author);
    return lines;
  }

  std::vector<BoardRow> rows_;
};

TEST_F(RankingTest, EntriesWhoseIntervalsOverlapTheGroupsBestShareItsRank) {
  Add("ann", "softmax", 2.0, 2.2);
  Add("ben", "softmax", 1.95, 2.05);  // overlaps ann
  Add("cas", "softmax", 1.9, 1.96);   // overlaps ben, not ann
  Add("dan", "softmax", 1.5, 1.6);
  Add("eve", "softmax", 1.45, 1.7);  // overlaps dan
  EXPECT_THAT(Ranks(), ElementsAre("1 ann", "1 ben", "3 cas", "4 dan", "4 eve"));
  const auto entries = RankProblem(rows_, {}).front().entries;
  EXPECT_EQ(entries[0].group, 2);
  EXPECT_EQ(entries[2].group, 1);
}

// At constants of one's own choice a naive kernel was 19 times as fast, and won the problem.
TEST_F(RankingTest, ConstantsOfOnesOwnCountForNoPlayer) {
  Add("ann", "softmax", 3.0, 3.1);
  BoardRow& easy = Add("dan", "softmax", 18, 19);
  easy.own_constants = true;
  easy.entry.size = "--set COLUMNS=2 --set ROWS=2";
  const PlayerBoard board = RankPlayers(rows_, {}, 1);
  ASSERT_EQ(board.players.size(), 1u);
  EXPECT_EQ(board.players[0].name, "ann");
  EXPECT_EQ(RankProblem(rows_, {}).size(), 2u) << "it has a board of its own";
}

TEST_F(RankingTest, AnAuthorsBestIsTheOneWithTheHighestProvenSpeed) {
  Add("ann", "softmax", 1.8, 1.9);
  Add("ann", "softmax", 1.0, 9.0);  // lucky, and proves little
  Add("ben", "softmax", 1.85, 1.86);
  EXPECT_THAT(Ranks(), ElementsAre("1 ben", "1 ann"));
}

TEST_F(RankingTest, PlayersAreComparedOnOneMachineAndInOneClassUnlessItIsAskedAcross) {
  Add("ann", "softmax", 2, 3);
  Add("ann", "matmul", 2, 3);
  Add("ben", "softmax", 4, 5).entry.gpu_or_cpu = "H100";
  Add("cas", "softmax", 3, 4).entry.precision = "tf32";
  PlayerBoard board = RankPlayers(rows_, {}, 2);
  ASSERT_EQ(board.players.size(), 1u);
  EXPECT_EQ(board.players[0].name, "ann");
  EXPECT_EQ(board.device + " " + board.precision, "cpu float32");
  EXPECT_EQ(board.devices, 2);
  EXPECT_EQ(board.precisions, 2);  // on that machine
  BoardQuery query;
  query.device = "H100";
  board = RankPlayers(rows_, query, 2);
  ASSERT_EQ(board.players.size(), 1u);
  EXPECT_EQ(board.players[0].name, "ben");
  query = {};
  query.across_devices = query.across_precisions = true;
  board = RankPlayers(rows_, query, 2);
  EXPECT_EQ(board.players.size(), 3u);
  EXPECT_EQ(board.device + board.precision, "");
  EXPECT_EQ(board.devices, 2);
  EXPECT_EQ(board.humans.size(), 3u);  // p = 0, 2 and 4
}

TEST_F(RankingTest, ACandidateIsShownOnEachMachineByItsNewestEntry) {
  const auto add = [&](const std::string& device, double low) {
    BoardRow& row = Add("ann", "softmax", low, low + 1);
    row.entry.gpu_or_cpu = device;
    row.entry.source_hash = "ab";
    return row;
  };
  add("H100", 2);
  const BoardRow row = add("cpu", 3);
  add("H100", 5);
  add("A100", 4);
  rows_.back().entry.size = "large";
  Add("ben", "softmax", 9, 10).entry.source_hash = "cd";
  Add("", "softmax", 9, 10).entry.source_hash = "ab";  // of a search
  const auto found = OnEachDevice(rows_, row);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].entry.gpu_or_cpu, "H100");
  EXPECT_EQ(found[0].entry.ci_low, 5);
  EXPECT_EQ(found[1].entry.gpu_or_cpu, "cpu");
}

TEST_F(RankingTest, VerdictsThatNobodySubmittedHaveNoRank) {
  Add("", "softmax", 5, 6).entry.foul = true;
  Add("ann", "softmax", 2, 3);
  EXPECT_THAT(Ranks(), ElementsAre("1 ann"));
  EXPECT_EQ(RankPlayers(rows_, {}, 1).players.size(), 1u);
  EXPECT_TRUE(Fouls(rows_, {}, 9).empty());
}

TEST_F(RankingTest, WrongEntriesHaveNoRankAndFoulsAreListed) {
  Add("ann", "softmax", 1.8, 1.9);
  BoardRow& foul = Add("ben", "softmax", 90, 100);
  foul.stage = Stage::kBuilt;
  foul.entry.foul = true;
  Add("cas", "softmax", 5, 6).prepares_weights = true;
  EXPECT_THAT(Ranks(), ElementsAre("1 ann"));
  ASSERT_EQ(Fouls(rows_, {}, 10).size(), 1u);
  EXPECT_EQ(Fouls(rows_, {}, 10)[0].entry.author, "ben");
  EXPECT_TRUE(Fouls(rows_, {.problem = "gelu"}, 10).empty());
}

TEST_F(RankingTest, SizesPrecisionsAndDevicesAreBoardsOfTheirOwn) {
  Add("ann", "softmax", 1.8, 1.9);
  Add("ben", "softmax", 1.8, 1.9);
  Add("ann", "softmax", 3, 4).entry.precision = "bfloat16";
  Add("ann", "softmax", 3, 4).entry.size = "large";
  Add("ann", "softmax", 3, 4).entry.gpu_or_cpu = "NVIDIA H200";
  const auto boards = RankProblem(rows_, {});
  ASSERT_EQ(boards.size(), 4u);
  EXPECT_EQ(boards[0].precision, "float32");
  EXPECT_EQ(boards[0].entries.size(), 2u);
  EXPECT_EQ(RankProblem(rows_, {.precision = "bfloat16"}).size(), 1u);
}

TEST_F(RankingTest, HumansAndMachinesMayBeLookedAtAlone) {
  Add("ann", "softmax", 1.8, 1.9);
  Add("model", "softmax", 3, 4).entry.role = Role::kMachine;
  EXPECT_THAT(Ranks({.by = Players::kHumans}), ElementsAre("1 ann"));
  EXPECT_THAT(Ranks({.by = Players::kMachines}), ElementsAre("1 model"));
  EXPECT_THAT(Ranks(), ElementsAre("1 model", "2 ann"));
}

TEST_F(RankingTest, PlayersAreRankedByProblemsThatAreCertifiedFasterThanP) {
  Add("ann", "softmax", 1.8, 1.9);
  Add("ann", "softmax", 1.1, 1.2);
  Add("ann", "gelu", 1.2, 2.0);
  Add("ben", "gelu", 2.5, 2.6);
  Add("cas", "gelu", 0.9, 1.1);
  const auto names = [&](double p) {
    std::vector<std::string> lines;
    for (const Competitor& player : RankPlayers(rows_, {.p = p}, 5).players)
      lines.push_back(std::to_string(player.rank) + " " + player.name + " " +
                      std::to_string(player.certified));
    return lines;
  };
  EXPECT_THAT(names(1), ElementsAre("1 ann 2", "2 ben 1", "3 cas 0"));
  EXPECT_THAT(names(1.5), ElementsAre("1 ann 1", "1 ben 1", "3 cas 0"));
  EXPECT_THAT(names(2), ElementsAre("1 ben 1", "2 ann 0", "2 cas 0"));
  EXPECT_THAT(names(0), ElementsAre("1 ann 2", "2 ben 1", "2 cas 1"));
  const PlayerBoard board = RankPlayers(rows_, {.p = 1}, 5);
  EXPECT_EQ(board.asked, 5);
  EXPECT_THAT(board.players[0].speeds, ElementsAre(1.8, 1.2));
  EXPECT_EQ(board.players[0].entries, 3);
  EXPECT_EQ(board.players[0].plain, 2);
  EXPECT_NEAR(board.players[0].mean_speedup, std::sqrt(1.85 * 1.6), 1e-9);
  EXPECT_EQ(CountAt(board.humans, 1), 2);
  EXPECT_EQ(CountAt(board.humans, 2), 1);
  EXPECT_EQ(CountAt(board.machines, 1), 0);
  EXPECT_EQ(RankPlayers(rows_, {.p = 1, .problems = {"softmax"}}, 1).players.size(), 1u);
}

TEST_F(RankingTest, WhatAnOwnRunnerSaysHasNoRank) {
  Add("ann", "softmax", 1.2, 1.3);
  BoardRow& forged = Add("ben", "softmax", 97, 98);
  forged.own_runner = true;
  EXPECT_THAT(Ranks(), ElementsAre("1 ann"));
  const PlayerBoard players = RankPlayers(rows_, {}, 1);
  ASSERT_EQ(players.players.size(), 1u);
  EXPECT_EQ(players.players[0].name, "ann");
  EXPECT_EQ(players.humans.size(), 2u) << "one step, at ann's speed";
  ASSERT_EQ(OfOwnRunners(rows_, {}, 10).size(), 1u);
  EXPECT_EQ(OfOwnRunners(rows_, {}, 10)[0].entry.author, "ben");
  EXPECT_TRUE(OfOwnRunners(rows_, {.problem = "gelu"}, 10).empty());
}

}  // namespace
}  // namespace assay
