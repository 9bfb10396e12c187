#include "cli/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "archive/sqlite_store.h"
#include "base/files.h"
#include "base/hash.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const JudgedSource kJudged{"mine.cpp", "int x;\n", "softmax", R"({"p":2.0})"};

class RecorderTest : public ::testing::Test {
 protected:
  RecorderTest()
      : folder_(TemporaryFolder::Create().value()),
        path_((folder_.path() / "data" / "archive.sqlite").string()) {}

  std::vector<Record> Records() const {
    RecordQuery query;
    query.oldest_first = true;
    return SqliteStore::OpenToRead(path_).value()->Find(query).value();
  }

  TemporaryFolder folder_;
  std::string path_;
};

TEST_F(RecorderTest, RecordsVerdictsFailuresAndRuns) {
  Verdict verdict;
  verdict.id = "3f2a9c01d4e7";
  {
    Recorder recorder(path_, false);
    recorder.RunBegan("runs/a", R"({"problems":[]})", "{}");
    recorder.Judged(kJudged, verdict);
    recorder.Unjudged(kJudged, {ErrorKind::kEnvironment, "needs CUDA"});
  }
  const std::vector<Record> records = Records();
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[0].facts.kind, RecordKind::kRun);
  EXPECT_EQ(records[0].facts.name, "runs/a");
  EXPECT_EQ(records[1].facts.kind, RecordKind::kCandidate);
  EXPECT_EQ(records[2].facts.id, "3f2a9c01d4e7");
  EXPECT_EQ(records[2].source, records[1].content);
  EXPECT_EQ(records[3].facts.kind, RecordKind::kFailure);
}

TEST_F(RecorderTest, RecordsTheFilesOfAVerdictOnceAndAsTheyWere) {
  const auto file = [&](const char* name, const std::string& text) {
    const std::string path = (folder_.path() / name).string();
    std::ofstream(path) << text;
    return path;
  };
  Verdict verdict;
  verdict.problem.path = file("softmax.py", "class Model: ...\n");
  verdict.problem.hash = Sha256Hex("class Model: ...\n");
  verdict.speed.emplace();
  verdict.speed->against = {file("best.cpp", "int changed;\n"), Sha256Hex("int best;\n")};
  {
    Recorder recorder(path_, false);
    recorder.Judged(kJudged, verdict);
    file("best.cpp", "int best;\n");
    recorder.Judged(kJudged, verdict);
  }
  std::vector<RecordKind> kinds;
  for (const Record& record : Records()) kinds.push_back(record.facts.kind);
  using enum RecordKind;
  EXPECT_THAT(kinds, ElementsAre(kReference, kCandidate, kVerdict, kCandidate, kVerdict));
}

TEST_F(RecorderTest, AVerdictOfARunThatIsRecordedAgainStandsOnce) {
  Verdict first, second;
  first.id = "3f2a9c01d4e7";
  second.id = "3f2a9c01d4e8";
  const Error error{ErrorKind::kEnvironment, "needs CUDA"};
  const std::vector<JudgedCandidate> judged{{kJudged, &first, nullptr}, {kJudged, nullptr, &error}};
  Recorder(path_, false).Judged(judged);
  Recorder(path_, false)
      .Judged(std::vector<JudgedCandidate>{judged[0], {kJudged, &second, nullptr}});
  std::vector<std::string> kinds;
  for (const Record& record : Records())
    kinds.push_back(std::string(RecordKindName(record.facts.kind)) + record.facts.id);
  EXPECT_THAT(kinds,
              ElementsAre("candidate", "verdict3f2a9c01d4e7", "failure", "verdict3f2a9c01d4e8"));
}

TEST_F(RecorderTest, MakesNoFileWhereItIsOff) {
  Recorder(path_, true).Judged(kJudged, Verdict());
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "data"));
}

TEST_F(RecorderTest, AFailureIsToldOnceAndTheNextRecordTriesAgain) {
  std::ofstream(folder_.path() / "data") << "in the way";
  Recorder recorder(path_, false);
  ::testing::internal::CaptureStderr();
  recorder.Judged(kJudged, Verdict());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("not recorded in the archive: "));
  ::testing::internal::CaptureStderr();
  recorder.Judged(kJudged, Verdict());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), IsEmpty());
  std::filesystem::remove(folder_.path() / "data");
  recorder.Judged(kJudged, Verdict());
  EXPECT_EQ(Records().size(), 2u);
}

}  // namespace
}  // namespace assay
