#include "archive/sqlite_store.h"

#include <sqlite3.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <fstream>

#include "archive/sqlite_schema.h"
#include "archive/store_conformance_test.h"

namespace assay {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

struct SqliteEngine {
  static std::string Place(const std::filesystem::path& folder) {
    return (folder / "new" / "archive.sqlite").string();
  }
  static Result<std::unique_ptr<Store>> Open(const std::string& place) {
    return SqliteStore::Open(place);
  }
  static void ChangeBytes(const std::string& place, const std::string& from,
                          const std::string& to) {
    std::string file = ReadFile(place, size_t{1} << 30).value();
    const size_t at = file.find(from);
    ASSERT_NE(at, std::string::npos);
    std::fstream stream(place, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(at)).write(to.data(), std::ssize(to));
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Sqlite, StoreConformance, SqliteEngine);

class SqliteFile : public ::testing::Test {
 protected:
  SqliteFile()
      : folder_(TemporaryFolder::Create().value()),
        path_((folder_.path() / "archive.sqlite").string()) {}

  // Runs SQL as any program could; returns SQLite's message, empty on success.
  std::string Sql(const std::string& sql) const {
    sqlite3* database = nullptr;
    sqlite3_open(path_.c_str(), &database);
    char* message = nullptr;
    sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &message);
    const std::string text = message == nullptr ? "" : message;
    sqlite3_free(message);
    sqlite3_close(database);
    return text;
  }
  Error OpenError() const {
    const auto store = SqliteStore::Open(path_, Impatient());
    return store ? Error{ErrorKind::kInterrupted, "it opens"} : store.error();
  }
  static SqliteStoreOptions Impatient() {
    SqliteStoreOptions options;
    options.busy_ms = 30;
    return options;
  }
  void Fill() const {
    const auto store = SqliteStore::Open(path_);
    ASSERT_TRUE(store) << store.error().message;
    const std::vector<NewRecord> records{NoteOf("one"), NoteOf("two"), NoteOf("three")};
    ASSERT_TRUE((*store)->Append(records));
  }
  std::vector<std::string> Faults() const {
    return VerifyChain(*SqliteStore::OpenToRead(path_).value())->faults;
  }
  // As a user without rights, where this one has all of them.
  static int AsNobody(const std::function<int()>& work) {
    return ExitOf(InChild([&] { return ::geteuid() != 0 || ::seteuid(65534) == 0 ? work() : 99; }));
  }

  TemporaryFolder folder_;
  std::string path_;
};

TEST_F(SqliteFile, NoProgramChangesARow) {
  Fill();
  EXPECT_THAT(Sql("UPDATE records SET outcome = 'faster'"), HasSubstr("never changed"));
  EXPECT_THAT(Sql("DELETE FROM records WHERE sequence = 3"), HasSubstr("never deleted"));
  EXPECT_THAT(Sql("REPLACE INTO records SELECT * FROM records"), HasSubstr("never replaced"));
  EXPECT_THAT(Sql("UPDATE blobs SET bytes = x'00'"), HasSubstr("never changed"));
  EXPECT_THAT(Sql("DELETE FROM blobs"), HasSubstr("never deleted"));
  EXPECT_THAT(Sql("REPLACE INTO blobs SELECT * FROM blobs"), HasSubstr("never replaced"));
  EXPECT_TRUE(Faults().empty());
}

TEST_F(SqliteFile, ARecordThatWasTakenOutIsMissed) {
  Fill();
  EXPECT_EQ(Sql("DROP TRIGGER records_remain; DELETE FROM records WHERE sequence = 2"), "");
  EXPECT_THAT(Faults(), Contains("record 3: record 2 is missing before it"));
}

TEST_F(SqliteFile, BytesThatWereTakenOutAreMissed) {
  Fill();
  EXPECT_EQ(Sql("DROP TRIGGER blobs_remain; DELETE FROM blobs WHERE hash LIKE '" +
                Sha256Hex("two") + "'"),
            "");
  EXPECT_THAT(Faults(), Contains(HasSubstr("record 2: ")));
}

TEST_F(SqliteFile, AFileThatIsNoneIsRefused) {
  std::ofstream(path_) << std::string(5000, 'x');
  EXPECT_THAT(OpenError().message, HasSubstr("is no archive"));
  EXPECT_EQ(OpenError().kind, ErrorKind::kUsage);
  EXPECT_THAT(SqliteStore::OpenToRead(path_).error().message, HasSubstr("is no archive"));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".lock"));  // nothing is made beside it
  EXPECT_EQ(ReadFile(path_, 10000)->size(), 5000u);
}

TEST_F(SqliteFile, ADatabaseOfAnotherProgramIsLeftAlone) {
  Sql("CREATE TABLE bookmarks(url)");
  EXPECT_THAT(OpenError().message, HasSubstr("database of another program"));
  EXPECT_EQ(OpenError().kind, ErrorKind::kUsage);
  EXPECT_THAT(Sql("CREATE TABLE bookmarks(url)"), HasSubstr("already exists"));
}

TEST_F(SqliteFile, AnArchiveOfANewerVersionIsLeftAlone) {
  Fill();
  Sql("PRAGMA user_version = 99");
  EXPECT_THAT(OpenError().message, HasSubstr("newer version of Assay (its format is 99"));
  EXPECT_THAT(SqliteStore::OpenToRead(path_).error().message, HasSubstr("newer version"));
}

TEST_F(SqliteFile, AnArchiveOfTheFirstVersionIsBroughtUpToDate) {
  Record record;
  record.sequence = 1;
  record.facts = {RecordKind::kNote, "old", "", "", ""};
  record.time = "2026-11-27T10:00:00Z";
  record.content = Sha256Hex("one");
  record.parent = kFirstParent;
  record.hash = RecordHash(record);
  ASSERT_EQ(Sql(fmt::format("{}; PRAGMA user_version = 1; PRAGMA application_id = {};"
                            "INSERT INTO blobs VALUES('{}', CAST('one' AS BLOB));"
                            "INSERT INTO records VALUES(1, 'note', '{}', 'old', '', '', '', '{}',"
                            " NULL, NULL, '{}', '{}')",
                            kArchiveMigrations[0], kArchiveApplicationId, record.content,
                            record.time, record.content, record.parent, record.hash)),
            "");
  EXPECT_THAT(SqliteStore::OpenToRead(path_).error().message, HasSubstr("older version"));
  {
    const auto store = SqliteStore::Open(path_);
    ASSERT_TRUE(store) << store.error().message;
    NewRecord search = NoteOf("settings");
    search.facts.kind = RecordKind::kSearch;
    search.facts.id = "0123456789ab";
    ASSERT_TRUE((*store)->Append(std::vector{search}));
    RecordQuery of_search;
    of_search.id = "0123456789ab";
    EXPECT_EQ((*store)->Find(of_search)->size(), 1u);
    EXPECT_EQ((*store)->Find({})->back().hash, record.hash);
  }
  EXPECT_TRUE(Faults().empty());
  EXPECT_THAT(Sql("DELETE FROM records"), HasSubstr("never deleted"));
  EXPECT_THAT(Sql("UPDATE records SET name = ''"), HasSubstr("never changed"));
}

TEST_F(SqliteFile, AFolderOrAMissingFileIsNamed) {
  EXPECT_THAT(SqliteStore::OpenToRead(path_).error().message, HasSubstr("there is no archive"));
  std::filesystem::create_directory(path_);
  EXPECT_THAT(OpenError().message, HasSubstr("a folder"));
}

TEST_F(SqliteFile, ADamagedPageIsAnErrorAndNoCrash) {
  Fill();
  const auto size = std::filesystem::file_size(path_) - 4096;  // all but the first page
  std::fstream(path_, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(4096)
      .write(std::string(size, '\x7f').data(), static_cast<std::streamsize>(size));
  const auto store = SqliteStore::OpenToRead(path_);
  const auto report =
      store ? VerifyChain(**store) : Result<ChainReport>(std::unexpected(store.error()));
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().message, HasSubstr("is damaged"));
}

TEST_F(SqliteFile, OfADamagedPageOnlyItsOwnRecordsAreLost) {
  constexpr int kRecords = 100;
  {
    const auto store = SqliteStore::Open(path_).value();
    for (int i = 0; i < kRecords; ++i)
      ASSERT_TRUE(
          store->Append(std::vector{NoteOf(fmt::format("{}", i), fmt::format("name-{:03}", i))}));
  }
  const std::string whole = ReadFile(path_, size_t{1} << 30).value();
  for (const char* name : {"name-050", "name-099"}) {
    // The page of the table; indexes have no names.
    const size_t page = whole.find(name) / 4096 * 4096;
    std::ofstream(path_, std::ios::binary)
        << whole.substr(0, page) << std::string(4096, '\x7f') << whole.substr(page + 4096);
    const auto store = SqliteStore::OpenToRead(path_).value();
    int read = 0, lost = 0;
    ASSERT_TRUE(ForEachRecord(
        *store, [&](const Record&) { return ++read > 0; },
        [&](int64_t, const Error& error) {
          EXPECT_THAT(error.message, HasSubstr("is damaged"));
          return ++lost > 0;
        }));
    EXPECT_GE(lost, 1);
    EXPECT_GT(read, kRecords - 20);
    const auto report = VerifyChain(*store);
    ASSERT_TRUE(report);
    EXPECT_THAT(report->faults, Contains(HasSubstr("is damaged")));
    for (const std::string& fault : report->faults)
      EXPECT_THAT(fault, ::testing::Not(HasSubstr("does not name")));
  }
}

TEST_F(SqliteFile, APipeIsNoArchive) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(SqliteStore::OpenToRead(path_).error().message, HasSubstr("a device or a pipe"));
  EXPECT_THAT(OpenError().message, HasSubstr("a device or a pipe"));
}

TEST_F(SqliteFile, AnotherProcessThatWritesIsWaitedForThenNamed) {
  Fill();
  const auto store = SqliteStore::Open(path_, Impatient());
  ASSERT_TRUE(store) << store.error().message;
  {
    UniqueFd lock(::open((path_ + ".lock").c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
    EXPECT_THAT((*store)->Put("x").error().message, HasSubstr("another process has been writing"));
    EXPECT_THAT(OpenError().message, HasSubstr("is in use"));
    EXPECT_TRUE(Faults().empty());  // whoever reads need not wait
  }
  EXPECT_TRUE((*store)->Put("x"));
}

TEST_F(SqliteFile, WritersThatUseALinkMeetAtOneLock) {
  Fill();
  const std::filesystem::path link = folder_.path() / "link.sqlite";
  std::filesystem::create_symlink("archive.sqlite", link);
  ASSERT_TRUE(SqliteStore::Open(link.string()).value()->Put("x"));
  EXPECT_TRUE(std::filesystem::exists(path_ + ".lock"));
  EXPECT_FALSE(std::filesystem::exists(link.string() + ".lock"));
}

TEST_F(SqliteFile, AnEmptyFileBecomesAnArchive) {
  std::ofstream(path_).flush();
  EXPECT_THAT(SqliteStore::OpenToRead(path_).error().message, HasSubstr("is empty"));
  Fill();
  EXPECT_TRUE(Faults().empty());
}

TEST_F(SqliteFile, AFolderThatIsReadOnlyCanBeReadFrom) {
  Fill();
  ::chmod(folder_.path().c_str(), 0555);
  ::chmod(path_.c_str(), 0444);
  EXPECT_EQ(AsNobody([&] {
              const auto refused = SqliteStore::Open(path_);
              if (refused || !refused.error().message.contains("cannot write to")) return 1;
              const auto store = SqliteStore::OpenToRead(path_);
              if (!store) return 2;
              const auto report = VerifyChain(**store);
              if (!report || report->records != 3 || !report->faults.empty()) return 3;
              return (*store)->Put("x") ? 4 : 0;
            }),
            0);
  ::chmod(folder_.path().c_str(), 0755);
}

TEST_F(SqliteFile, AFullDiskLosesNothing) {
  Fill();
  EXPECT_EQ(ExitOf(InChild([&] {
              const auto store = SqliteStore::Open(path_);
              if (!store) return 1;
              ::signal(SIGXFSZ, SIG_IGN);
              const rlimit room{300'000, 300'000};
              ::setrlimit(RLIMIT_FSIZE, &room);
              const std::vector<NewRecord> large{NoteOf(std::string(2'000'000, 'x'))};
              const auto refused = (*store)->Append(large);
              if (refused || refused.error().kind != ErrorKind::kEnvironment) return 2;
              if (!refused.error().message.contains(path_)) return 3;
              return (*store)->Append(std::vector{NoteOf("still fits")}) ? 0 : 4;
            })),
            0);
  EXPECT_TRUE(Faults().empty());
  EXPECT_EQ(SqliteStore::OpenToRead(path_).value()->Find({})->size(), 4u);
}

TEST_F(SqliteFile, TheClockMayGoBackwards) {
  int calls = 0;
  SqliteStoreOptions options;
  options.now = [&] { return fmt::format("2026-11-27T10:00:{:02}Z", 30 - ++calls); };
  const auto store = SqliteStore::Open(path_, options);
  ASSERT_TRUE((*store)->Append(std::vector{NoteOf("one"), NoteOf("two")}));
  const auto records = (*store)->Find({});
  EXPECT_EQ(records->front().sequence, 2);
  EXPECT_LT(records->front().time, records->back().time);
  EXPECT_TRUE(VerifyChain(**store)->faults.empty());
}

}  // namespace
}  // namespace assay
