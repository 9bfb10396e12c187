#include "archive/copy.h"

#include "archive/postgres_store.h"
#include "archive/postgres_testing.h"
#include "archive/sqlite_store.h"
#include "archive/store_conformance_test.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

// A store whose bytes of one hash are gone, until it is mended.
class LackingStore : public Store {
 public:
  LackingStore(Store& store, std::string lacks) : store_(store), lacks_(std::move(lacks)) {}
  void Mend() { lacks_.clear(); }

  Result<std::string> Put(std::string_view bytes) override { return store_.Put(bytes); }
  Result<std::string> Get(const std::string& hash) override {
    if (hash == lacks_) return EnvironmentError("a faulty disk");
    return store_.Get(hash);
  }
  Result<std::vector<Record>> Append(std::span<const NewRecord> records) override {
    return store_.Append(records);
  }
  Result<std::vector<Record>> Find(const RecordQuery& query) override { return store_.Find(query); }
  Result<int64_t> Adopt(std::span<const Record> records,
                        std::span<const std::string> bytes) override {
    return store_.Adopt(records, bytes);
  }

 private:
  Store& store_;
  std::string lacks_;
};

class Copying : public ::testing::Test {
 protected:
  Copying() : folder_(TemporaryFolder::Create().value()), from_(Make("from")), to_(Make("to")) {
    std::vector<NewRecord> records;
    for (int i = 0; i < 700; ++i) records.push_back(NoteOf(fmt::format("text {}", i)));
    records[3] = VerdictOf("softmax", "faster", "ab12");
    EXPECT_TRUE(from_->Append(records));
  }
  std::unique_ptr<Store> Make(const std::string& name) const {
    return SqliteStore::Open((folder_.path() / name).string()).value();
  }
  static std::string Head(Store& store) { return VerifyChain(store)->head; }

  TemporaryFolder folder_;
  std::unique_ptr<Store> from_, to_;
};

TEST_F(Copying, ACopyHasTheSameChainAndMayBeRepeated) {
  const auto report = CopyArchive(*from_, *to_);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->copied, 700);
  EXPECT_EQ(report->head, Head(*to_));
  EXPECT_EQ(report->head, Head(*from_));
  EXPECT_THAT(VerifyChain(*to_)->faults, ::testing::IsEmpty());
  EXPECT_EQ(CopyArchive(*from_, *to_)->copied, 0);
  ASSERT_TRUE(from_->Append(std::vector{NoteOf("one more")}));
  const auto again = CopyArchive(*from_, *to_);
  EXPECT_EQ(again->copied, 1);
  EXPECT_EQ(again->known, 700);
}

TEST_F(Copying, ACopyThatFailedGoesOn) {
  LackingStore lacking(*from_, Sha256Hex("text 600"));
  EXPECT_THAT(CopyArchive(lacking, *to_).error().message, HasSubstr("a faulty disk"));
  EXPECT_EQ(VerifyChain(*to_)->records, 512);
  lacking.Mend();
  EXPECT_EQ(CopyArchive(lacking, *to_)->copied, 188);
  EXPECT_EQ(Head(*to_), Head(*from_));
}

TEST_F(Copying, ArchivesThatDifferAreLeftAlone) {
  ASSERT_TRUE(to_->Append(std::vector{NoteOf("of its own")}));
  const auto differs = CopyArchive(*from_, *to_);
  EXPECT_EQ(differs.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(differs.error().message, HasSubstr("different records at 1"));
  EXPECT_EQ(VerifyChain(*to_)->records, 1);
}

TEST_F(Copying, AnArchiveThatIsAheadIsNamed) {
  ASSERT_TRUE(CopyArchive(*from_, *to_));
  ASSERT_TRUE(to_->Append(std::vector{NoteOf("one more")}));
  EXPECT_THAT(CopyArchive(*from_, *to_).error().message, HasSubstr("copy the other way"));
}

TEST_F(Copying, IntoPostgresAndBackNothingChanges) {
  const auto server = PostgresServer::Shared();
  if (!server) GTEST_SKIP() << server.error().message;
  const auto database = PostgresStore::Open((*server)->NewDatabase()).value();
  const auto there = CopyArchive(*from_, *database);
  ASSERT_TRUE(there) << there.error().message;
  EXPECT_EQ(there->copied, 700);
  EXPECT_THAT(VerifyChain(*database)->faults, ::testing::IsEmpty());
  const auto back = CopyArchive(*database, *to_);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->head, Head(*from_));
  EXPECT_EQ(Head(*to_), Head(*from_));
}

}  // namespace
}  // namespace assay
