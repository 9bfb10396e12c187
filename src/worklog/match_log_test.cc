#include "worklog/match_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "archive/sqlite_store.h"
#include "base/files.h"
#include "worklog/worklog_testing.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class MatchLogTest : public testing::Test {
 protected:
  MatchLogTest()
      : temporary_(TemporaryFolder::Create().value()),
        store_(SqliteStore::Open((temporary_.path() / "archive.sqlite").string()).value()),
        folder_(WorklogFolder::Make((temporary_.path() / "match").string()).value()) {
    match_.begun = {"0123456789ab", "softmax", Sha256Hex("problem"), "{}", 1};
    Words words;
    words.id = match_.begun.worklog;
    words.problem = "softmax";
    EXPECT_TRUE(folder_.AddWords(WordsHead(words)));
  }

  MatchLog Log() { return MatchLog(*store_, folder_, match_); }
  Witness Ask() {
    return AskArchive(*store_, "archive", folder_.facts(), match_.begun.worklog).value();
  }
  void Elsewhere(const std::string& id) {
    ASSERT_TRUE(
        store_->Append(RecordsOfVerdict({"other.cpp", "x", "softmax", ""}, SpeedVerdict(id, 2))));
  }

  TemporaryFolder temporary_;
  std::unique_ptr<SqliteStore> store_;
  WorklogFolder folder_;
  Match match_;
};

TEST_F(MatchLogTest, EventsAreInTheArchiveAndInTheFolder) {
  MatchLog log = Log();
  ASSERT_TRUE(log.Record(match_.begun));
  ASSERT_TRUE(log.Record(Predicted{"memory", 2, "why"}));
  ASSERT_TRUE(log.Record(Attempted{"v1", Player::kHand, "versions/v1.cpp", "aa", "why", 0}));
  ASSERT_TRUE(log.RecordVerdict("v1", {"v1.cpp", "source", "softmax", "{}"},
                                SpeedVerdict("aaaaaaaaaaa1", 2)));
  const auto worklog = folder_.Read();
  ASSERT_TRUE(worklog) << worklog.error().message;
  EXPECT_TRUE(worklog->match.breaks.empty());
  EXPECT_EQ(worklog->match.Find("v1")->verdict->id, "aaaaaaaaaaa1");
  EXPECT_THAT(worklog->match.outside, IsEmpty());
  const Witness witness = Ask();
  EXPECT_THAT(witness.unknown, IsEmpty());
  EXPECT_TRUE(witness.missing.empty());
  EXPECT_TRUE(VerifyChain(*store_)->faults.empty());
}

TEST_F(MatchLogTest, FactsThatTheFolderLostAreInTheArchive) {
  MatchLog log = Log();
  ASSERT_TRUE(log.Record(match_.begun));
  ASSERT_TRUE(log.Record(Attempted{"v1", Player::kHand, "versions/v1.cpp", "aa", "why", 0}));
  ASSERT_TRUE(log.RecordVerdict("v1", {"v1.cpp", "source", "softmax", "{}"},
                                SpeedVerdict("aaaaaaaaaaa1", 2)));
  std::vector<Fact> facts = folder_.facts();
  const size_t all = facts.size();
  facts.resize(1);
  const Witness witness = AskArchive(*store_, "archive", facts, match_.begun.worklog).value();
  EXPECT_EQ(witness.missing.size(), all - 1);
  facts.insert(facts.end(), witness.missing.begin(), witness.missing.end());
  EXPECT_TRUE(ReadMatch(facts)->breaks.empty());
}

TEST_F(MatchLogTest, VerdictsElsewhereAreNoted) {
  Elsewhere("cccccccccccc");
  MatchLog log = Log();
  ASSERT_TRUE(log.Record(match_.begun));
  ASSERT_TRUE(log.Record(Predicted{"memory", 2, "why"}));
  Elsewhere("dddddddddddd");
  ASSERT_TRUE(log.Record(Predicted{"memory", 3, "why"}));
  const auto worklog = folder_.Read();
  ASSERT_TRUE(worklog);
  EXPECT_THAT(worklog->match.before, ElementsAre("cccccccccccc"));
  EXPECT_THAT(worklog->match.outside, ElementsAre("cccccccccccc", "dddddddddddd"));
}

// Judgements that were made to learn something left the worklog suspicious for ever.
TEST_F(MatchLogTest, AVerdictElsewhereCanBeTakenIn) {
  MatchLog log = Log();
  ASSERT_TRUE(log.Record(match_.begun));
  ASSERT_TRUE(log.Record(Predicted{"memory", 2, "why"}));
  Verdict verdict = SpeedVerdict("cccccccccccc", 2);
  verdict.problem.hash = match_.begun.reference_hash;
  const auto append = [&](const Verdict& each) {
    ASSERT_TRUE(store_->Append(RecordsOfVerdict({"other.cpp", "x", "softmax", ""}, each)));
  };
  append(verdict);
  ASSERT_TRUE(log.RecordBesides("cccccccccccc", "is the prefetch worth it?"));
  EXPECT_THAT(log.RecordBesides("cccccccccccc", "again").error().message,
              HasSubstr("stands in the worklog"));
  EXPECT_THAT(log.RecordBesides("none", "why").error().message, HasSubstr("has no verdict none"));
  verdict.id = "dddddddddddd";
  verdict.problem.hash = Sha256Hex("another problem");
  append(verdict);
  EXPECT_THAT(log.RecordBesides("dddddddddddd", "why").error().message,
              HasSubstr("not on the reference of this match"));
  const auto worklog = folder_.Read();
  ASSERT_TRUE(worklog) << worklog.error().message;
  EXPECT_THAT(worklog->match.outside, IsEmpty());
  ASSERT_EQ(worklog->match.besides.size(), 1u);
  EXPECT_EQ(worklog->match.besides[0].said.why, "is the prefetch worth it?");
  EXPECT_EQ(worklog->match.besides[0].verdict->id, "cccccccccccc");
  EXPECT_THAT(Ask().unknown, IsEmpty());
  // The archive gives it back.
  std::vector<Fact> facts = folder_.facts();
  facts.resize(1);
  const Witness witness = AskArchive(*store_, "archive", facts, match_.begun.worklog).value();
  EXPECT_EQ(witness.missing.size(), folder_.facts().size() - 1);
}

TEST_F(MatchLogTest, AnotherArchiveDoesNotKnowTheFacts) {
  MatchLog log = Log();
  ASSERT_TRUE(log.Record(match_.begun));
  const auto other = SqliteStore::Open((temporary_.path() / "other.sqlite").string()).value();
  const Witness witness =
      AskArchive(*other, "other", folder_.facts(), match_.begun.worklog).value();
  EXPECT_THAT(witness.unknown, ElementsAre(1));
  EXPECT_TRUE(witness.missing.empty());
}

TEST_F(MatchLogTest, TheFolderIsForOneProcessAtATime) {
  const auto second = WorklogFolder::Open(folder_.path());
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("another assay worklog works on"));
}

}  // namespace
}  // namespace assay
