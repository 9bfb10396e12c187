#include "speed/replay_policy.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(ReplayPolicy, ACandidatesCodeIsNeverReplayed) {
  EXPECT_FALSE(ReplayPolicy(false).MayReplay());
}

TEST(ReplayPolicy, TheFirstPairDecidesForAll) {
  ReplayPolicy policy(true);
  policy.BeginPair();
  EXPECT_TRUE(policy.MayReplay());
  EXPECT_TRUE(policy.BeginTry());
  policy.Start();
  policy.Settle();
  EXPECT_TRUE(policy.replaying());
  policy.BeginPair();
  EXPECT_FALSE(policy.replaying());
  EXPECT_TRUE(policy.MayReplay());
  EXPECT_FALSE(policy.BeginTry());
  EXPECT_TRUE(policy.settled());
}

TEST(ReplayPolicy, ATryThatIsNotSettledIsTheLast) {
  ReplayPolicy policy(true);
  policy.BeginPair();
  policy.BeginTry();
  policy.BeginPair();
  EXPECT_FALSE(policy.MayReplay());
}

TEST(ReplayPolicy, OnlyAReplayCanBeMissed) {
  ReplayPolicy policy(true);
  policy.Note(false);
  EXPECT_FALSE(policy.missed());
  policy.Start();
  policy.Note(true);
  EXPECT_FALSE(policy.missed());
  policy.Note(false);
  policy.Note(true);
  EXPECT_TRUE(policy.missed());
  policy.GiveUp();
  EXPECT_FALSE(policy.missed());
  EXPECT_FALSE(policy.replaying());
  EXPECT_FALSE(policy.MayReplay());
}

}  // namespace
}  // namespace assay
