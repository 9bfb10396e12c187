#include "archive/postgres_store.h"

#include <thread>

#include "archive/postgres_schema.h"
#include "archive/postgres_testing.h"
#include "archive/store_conformance_test.h"

namespace assay {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

struct PostgresEngine {
  static std::string Place(const std::filesystem::path&) {
    const auto server = PostgresServer::Shared();
    return server ? (*server)->NewDatabase() : "";
  }
  static Result<std::unique_ptr<Store>> Open(const std::string& place) {
    return PostgresStore::Open(place);
  }
  static void ChangeBytes(const std::string& place, const std::string& from,
                          const std::string& to) {
    (*PostgresServer::Shared())
        ->Sql(place, fmt::format("UPDATE assay.blobs SET bytes = '{1}' WHERE bytes = '{0}';"
                                 "UPDATE assay.records SET name = '{1}' WHERE name = '{0}'",
                                 from, to));
  }
  static std::string Unavailable() { return WhyNoPostgres(); }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Postgres, StoreConformance, PostgresEngine);

class PostgresArchive : public OnPostgres {
 protected:
  std::unique_ptr<PostgresStore> Open() const { return PostgresStore::Open(url_).value(); }
  // The server's message; empty on success.
  std::string Sql(const std::string& sql) const {
    auto connection = PostgresConnection::Open(url_).value();
    const auto done = connection.Run(sql);
    return done ? "" : done.error().message;
  }
  static Error ErrorOf(const std::string& url) {
    const auto store = PostgresStore::Open(url);
    return store ? Error{ErrorKind::kInterrupted, "it opens"} : store.error();
  }
  static std::vector<std::string> Faults(Store& store) { return VerifyChain(store)->faults; }
};

TEST_F(PostgresArchive, NoProgramChangesARow) {
  const auto store = Open();
  ASSERT_TRUE(store->Append(std::vector{NoteOf("one"), NoteOf("two")}));
  EXPECT_THAT(Sql("UPDATE assay.records SET time = ''"), HasSubstr("record is never changed"));
  EXPECT_THAT(Sql("DELETE FROM assay.records"), HasSubstr("record is never deleted"));
  EXPECT_THAT(Sql("TRUNCATE assay.records"), HasSubstr("record is never deleted"));
  EXPECT_THAT(Sql("UPDATE assay.blobs SET bytes = ''"), HasSubstr("blob is never changed"));
  EXPECT_THAT(Sql("DELETE FROM assay.blobs"), HasSubstr("blob is never deleted"));
  EXPECT_THAT(Sql("INSERT INTO assay.records SELECT sequence + 9, kind, time, name, id, problem, "
                  "outcome, content, source, terms, parent, 'x' FROM assay.records LIMIT 1"),
              HasSubstr("names the one before it"));
  EXPECT_THAT(Faults(*store), ::testing::IsEmpty());
}

TEST_F(PostgresArchive, ARecordThatWasTakenOutIsMissed) {
  const auto store = Open();
  ASSERT_TRUE(store->Append(std::vector{NoteOf("one"), NoteOf("two"), NoteOf("three")}));
  server_->Sql(url_, "DELETE FROM assay.records WHERE sequence = 2");
  EXPECT_THAT(Faults(*store), Contains("record 3: record 2 is missing before it"));
  server_->Sql(url_, "DELETE FROM assay.blobs WHERE bytes = 'three'");
  EXPECT_THAT(Faults(*store), Contains(HasSubstr("has no bytes of hash")));
}

TEST_F(PostgresArchive, NamesMayBeAnyBytes) {
  const std::string name = "\xff\xfe'\"\\{},NULL";
  const auto made = Open()->Append(std::vector{NoteOf("one", name)});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->front().facts.name, name);
  EXPECT_EQ(Open()->Find({})->front().facts.name, name);
}

TEST_F(PostgresArchive, AnAppendIsWholeOrNothing) {
  const auto store = Open();
  server_->Sql(url_, "ALTER TABLE assay.records ADD CHECK (name <> 'bad')");
  EXPECT_FALSE(store->Append(std::vector{NoteOf("one"), NoteOf("two", "bad"), NoteOf("three")}));
  EXPECT_TRUE(store->Find({})->empty());
  EXPECT_EQ(store->Append(std::vector{NoteOf("one")})->size(), 1u);
}

TEST_F(PostgresArchive, WrongPlacesAreNamedWithoutThePassword) {
  const auto wrong = [&](const std::string& from, const std::string& to) {
    std::string url = url_;
    return ErrorOf(url.replace(url.find(from), from.size(), to));
  };
  const Error role = wrong("owner@", "nobody:secretword@");
  EXPECT_EQ(role.kind, ErrorKind::kUsage);
  EXPECT_THAT(role.message, HasSubstr("role \"nobody\" does not exist"));
  EXPECT_THAT(role.message, HasSubstr("check the role"));
  const Error database = wrong("/test_", "/absent_");
  EXPECT_EQ(database.kind, ErrorKind::kUsage);
  EXPECT_THAT(database.message, HasSubstr("create it with createdb"));
  const Error host = ErrorOf("postgresql://me:secretword@127.0.0.1:1/assay");
  EXPECT_EQ(host.kind, ErrorKind::kEnvironment);
  EXPECT_THAT(host.message, HasSubstr("cannot reach postgresql://me@127.0.0.1:1/assay"));
  const Error at = ErrorOf("postgresql://me:secret@word@127.0.0.1/assay");
  EXPECT_EQ(at.kind, ErrorKind::kUsage);
  const Error port = ErrorOf("postgresql://me:secretword@host:secretword/assay");
  for (const Error& error : {role, host, at, port})
    EXPECT_THAT(error.message, Not(HasSubstr("secret"))) << error.message;
}

TEST_F(PostgresArchive, ItIsReadOnlyWhereItIs) {
  EXPECT_THAT(PostgresStore::OpenToRead(url_).error().message, HasSubstr("there is no archive in"));
  ASSERT_TRUE(Open()->Append(std::vector{NoteOf("one")}));
  const auto store = PostgresStore::OpenToRead(url_);
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_EQ((*store)->Find({})->size(), 1u);
  EXPECT_THAT((*store)->Put("x").error().message, HasSubstr("for reading alone"));
}

TEST_F(PostgresArchive, ANewerVersionIsLeftAlone) {
  Open();
  server_->Sql(url_, "UPDATE assay.formats SET version = 99");
  EXPECT_THAT(ErrorOf(url_).message, HasSubstr("newer version of Assay (its format is 99"));
}

TEST_F(PostgresArchive, TablesOfAnotherProgramAreLeftAlone) {
  server_->Sql(url_, "CREATE SCHEMA assay; CREATE TABLE assay.records(url text)");
  EXPECT_FALSE(PostgresStore::Open(url_));
  EXPECT_EQ(Sql("SELECT url FROM assay.records"), "");
  EXPECT_THAT(Sql("SELECT * FROM assay.formats"), HasSubstr("does not exist"));  // rolled back
}

TEST_F(PostgresArchive, AppendsOutliveTheServersRestarts) {
  PostgresSessionOptions options;
  std::vector<std::string> told;
  options.tell = [&](const std::string& what) { told.push_back(what); };
  const auto store = PostgresStore::Open(url_, options).value();
  std::set<std::string> acknowledged;
  std::thread crashing([&] { server_->Crash(); });
  int appends = 0;
  for (; appends < 5 || told.size() < 2; ++appends) {
    ASSERT_LT(appends, 100'000);
    const auto made = store->Append(std::vector{NoteOf(fmt::format("{}", appends))});
    ASSERT_TRUE(made) << made.error().message;
    ASSERT_EQ(made->size(), 1u);
    acknowledged.insert(made->front().hash);
  }
  crashing.join();
  EXPECT_THAT(told.front(), HasSubstr("trying again"));
  EXPECT_THAT(told.back(), HasSubstr("answers again"));
  EXPECT_THAT(told.back(), Not(HasSubstr("secret")));
  const std::vector<Record> kept = store->Find({}).value();
  EXPECT_EQ(kept.size(), acknowledged.size());  // nothing lost, nothing twice
  for (const Record& record : kept) EXPECT_TRUE(acknowledged.contains(record.hash));
  EXPECT_THAT(Faults(*store), ::testing::IsEmpty());
}

TEST_F(PostgresArchive, ListenersHearOfAppends) {
  const auto store = Open();
  auto listener = PostgresConnection::Open(url_).value();
  ASSERT_TRUE(listener.Listen("assay_archive"));
  EXPECT_FALSE(listener.WaitForNotice(1).value());
  ASSERT_TRUE(store->Append(std::vector{NoteOf("one")}));
  EXPECT_TRUE(listener.WaitForNotice(10'000).value());
}

}  // namespace
}  // namespace assay
