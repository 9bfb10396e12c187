#include "archive/exported.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "archive/record_json.h"
#include "archive/sqlite_store.h"
#include "base/files.h"

namespace assay {
namespace {

using testing::HasSubstr;

NewRecord Made(RecordKind kind, const std::string& name, const std::string& content,
               const std::string& source = "", const std::string& terms = "") {
  NewRecord record;
  record.facts = {kind, name, "12ab", "softmax", ""};
  record.content = content;
  record.source = source;
  record.terms = terms;
  return record;
}

class ExportedTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = TemporaryFolder::Create();
    ASSERT_TRUE(folder);
    folder_.emplace(std::move(*folder));
  }
  std::unique_ptr<SqliteStore> Open(const std::string& name) {
    SqliteStoreOptions options;
    options.now = [this] { return now_; };
    auto store = SqliteStore::Open((folder_->path() / name).string(), options);
    EXPECT_TRUE(store) << store.error().message;
    return std::move(*store);
  }
  static std::string Export(Store& store) {
    std::string text;
    const auto read = ForEachRecord(
        store,
        [&](const Record& record) {
          text += *RecordToJson(record, store) + "\n";
          return true;
        },
        [](int64_t, const Error&) { return false; });
    EXPECT_TRUE(read);
    return text;
  }
  // A search with a step whose source is judged later, and one whose source never is.
  std::string Sample() {
    const auto store = Open("first.sqlite");
    const std::string source = "int quick;\n", other = "int other;\n";
    const std::vector<NewRecord> records{
        Made(RecordKind::kReference, "softmax.py", "import torch\n"),
        Made(RecordKind::kSearch, "evolve", R"({"schema":"assay.search/1","b":1.5,"a":2e-05})",
             other, R"({"size":"small"})"),
        Made(RecordKind::kStep, "judge/0", R"({"key":"judge/0"})", source),
        Made(RecordKind::kCandidate, "quick.cpp", source),
        Made(RecordKind::kResult, "judge/0", R"({"key":"judge/0","text":"ä \n"})")};
    EXPECT_TRUE(store->Append(records));
    return Export(*store);
  }

  std::optional<TemporaryFolder> folder_;
  std::string now_ = "2026-11-27T10:00:00Z";
};

TEST_F(ExportedTest, ExportedRecordsMakeTheSameArchive) {
  const std::string text = Sample();
  const auto records = ParseExportedRecords(text, "a.jsonl");
  ASSERT_TRUE(records) << records.error().message;
  ASSERT_EQ(records->size(), 5u);
  EXPECT_EQ((*records)[2].record.source, "int quick;\n");
  EXPECT_EQ((*records)[1].record.source, "int other;\n");
  const auto store = Open("second.sqlite");
  for (const ExportedRecord& each : *records) {
    now_ = each.time;
    ASSERT_TRUE(store->Append(std::vector{each.record}));
  }
  EXPECT_EQ(Export(*store), text);  // hashes and all
}

TEST_F(ExportedTest, AChangedRecordIsRefused) {
  const std::string text = Sample();
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"int quick", "int quack"}, {"1.5", "1.6"}, {"small", "large"}, {"evolve", "sample"}}) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    const auto records = ParseExportedRecords(changed, "a.jsonl");
    ASSERT_FALSE(records) << from;
    EXPECT_THAT(records.error().message, HasSubstr("a.jsonl:"));
  }
  const auto cut = ParseExportedRecords(text.substr(text.find('\n') + 1), "a.jsonl");
  EXPECT_THAT(cut.error().message, HasSubstr("a.jsonl:1: the record is not as it was exported"));
  EXPECT_THAT(ParseExportedRecords("{}\n", "b").error().message, HasSubstr("this is no record"));
}

}  // namespace
}  // namespace assay
