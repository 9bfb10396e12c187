#include "archive/judged.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "archive/record_json.h"
#include "archive/sqlite_store.h"
#include "base/files.h"
#include "base/hash.h"
#include "model/sample_verdicts.h"
#include "model/verdict_json.h"

namespace assay {
namespace {

using Json = nlohmann::json;

const JudgedSource kJudged{"mine.cpp", "int x;\n", "softmax", R"({"p":2.0})"};

TEST(Judged, AVerdictComesWithItsSourceAndTerms) {
  const Verdict verdict = SampleVerdict(Outcome::kFaster);
  const std::vector<NewRecord> records = RecordsOfVerdict(kJudged, verdict);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].facts.kind, RecordKind::kCandidate);
  EXPECT_EQ(records[0].content, "int x;\n");
  EXPECT_TRUE(records[0].once);
  EXPECT_EQ(records[1].facts.kind, RecordKind::kVerdict);
  EXPECT_EQ(records[1].facts.id, verdict.id);
  EXPECT_EQ(records[1].facts.outcome, "faster");
  EXPECT_EQ(records[1].source, "int x;\n");
  EXPECT_EQ(VerdictFromJson(records[1].content)->samples.size(), verdict.samples.size());
}

TEST(Judged, AnUnknownSourceIsNoRecord) {
  const auto records = RecordsOfFailure({"", "", "softmax", ""}, {ErrorKind::kUsage, "no CUDA"});
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].facts.kind, RecordKind::kFailure);
  EXPECT_EQ(Json::parse(records[0].content)["message"], "no CUDA");
}

TEST(RecordJson, HasWhatTheRecordIsAbout) {
  const auto folder = TemporaryFolder::Create().value();
  auto store = SqliteStore::Open((folder.path() / "archive.sqlite").string());
  ASSERT_TRUE(store) << store.error().message;
  const Verdict verdict = SampleVerdict(Outcome::kWrong);
  const auto records = (*store)->Append(RecordsOfVerdict(kJudged, verdict));
  ASSERT_TRUE(records) << records.error().message;
  const Json candidate = Json::parse(RecordToJson(records->at(0), **store).value());
  EXPECT_EQ(candidate["kind"], "candidate");
  EXPECT_EQ(candidate["text"], "int x;\n");
  EXPECT_EQ(candidate["content"], Sha256Hex("int x;\n"));
  const Json line = Json::parse(RecordToJson(records->at(1), **store).value());
  EXPECT_EQ(line["schema"], "assay.archive/1");
  EXPECT_EQ(line["source"], candidate["content"]);
  EXPECT_EQ(line["parent"], candidate["hash"]);
  EXPECT_EQ(line["terms"]["p"], 2.0);
  EXPECT_EQ(line["verdict"]["outcome"], "wrong");
  EXPECT_EQ(line["verdict"], Json::parse(VerdictToJson(verdict, -1)));
}

// An export of a search had the hash of the source that it began from, and the source nowhere.
TEST(RecordToJson, HasTheSourceThatNobodyJudged) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const auto store = SqliteStore::Open((folder.path() / "archive.sqlite").string()).value();
  NewRecord search, step;
  search.facts.kind = RecordKind::kSearch;
  step.facts.kind = RecordKind::kStep;
  search.content = step.content = "{}";
  search.source = "//! tune A = 1 2\n";
  step.source = "//! tune A = 2\n";
  const auto records =
      store
          ->Append(std::vector{search, step,
                               RecordOfFile(RecordKind::kCandidate, "a.cpp", "", step.source)})
          .value();
  EXPECT_EQ(Json::parse(RecordToJson(records[0], *store).value())["text"], search.source);
  const Json judged = Json::parse(RecordToJson(records[1], *store).value());
  EXPECT_FALSE(judged.contains("text"));  // its candidate's record has it
  EXPECT_EQ(judged["source"], records[2].content);
}

}  // namespace
}  // namespace assay
