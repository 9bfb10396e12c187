// Tests that both sides' sources decide on the queues of a verdict's hosts.
#include "session/queue_choice.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

constexpr const char* kPlain = "import torch\ny = torch.relu(x)\n";
constexpr const char* kStreams = "import torch\ns = torch.cuda.Stream()\n";

SessionTerms TermsOf(const char* problem) {
  SessionTerms terms;
  terms.problem.source = problem;
  return terms;
}

TEST(QueuesOf, OneSuffices) {
  EXPECT_EQ(QueuesOf(TermsOf(kPlain), kPlain), DeviceQueues::kOne);
  EXPECT_EQ(QueuesOf(TermsOf(kPlain), ""), DeviceQueues::kOne);
}

TEST(QueuesOf, StreamsOfEitherSideTakeTheDriversChoice) {
  EXPECT_EQ(QueuesOf(TermsOf(kPlain), kStreams), DeviceQueues::kByDefault);
  EXPECT_EQ(QueuesOf(TermsOf(kStreams), kPlain), DeviceQueues::kByDefault);
}

TEST(QueuesOf, TheOtherCandidateIsASide) {
  SessionTerms terms = TermsOf(kStreams);
  terms.opponent.against.emplace().content = kPlain;
  EXPECT_EQ(QueuesOf(terms, kPlain), DeviceQueues::kOne);  // the reference is not timed
  terms.opponent.against->content = kStreams;
  EXPECT_EQ(QueuesOf(terms, kPlain), DeviceQueues::kByDefault);
}

TEST(QueuesOf, BaselinesThatReplayGraphsTakeTheDriversChoice) {
  SessionTerms terms = TermsOf(kPlain);
  terms.opponent.baselines = {"eager", "compiled"};
  EXPECT_EQ(QueuesOf(terms, kPlain), DeviceQueues::kOne);
  terms.opponent.baselines = {"eager", "compiled-max-autotune"};
  EXPECT_EQ(QueuesOf(terms, kPlain), DeviceQueues::kByDefault);
}

}  // namespace
}  // namespace assay
