#include "search/recorded_verdicts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "archive/judged.h"
#include "archive/sqlite_store.h"
#include "base/files.h"
#include "search/search_testing.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

constexpr const char* kFirst = R"({"problem":"softmax","one_size":true,"budget_s":15.0})";
constexpr const char* kFirstLonger = R"({"problem":"softmax","one_size":true,"budget_s":60.0})";
constexpr const char* kSecond = R"({"problem":"softmax"})";

class RecordedVerdictsTest : public ::testing::Test {
 protected:
  RecordedVerdictsTest()
      : folder_(TemporaryFolder::Create().value()),
        store_(SqliteStore::Open((folder_.path() / "a.sqlite").string()).value()) {
    Judged("int a;", kFirst, VerdictWith(1.5, "a1"));
    Judged("int a;", kFirst, VerdictWith(1.9, "a2"));  // the first one counts
    Judged("int a;", kSecond, VerdictWith(1.4, "a3"));
    Judged("int b;", kFirst, VerdictWith(0, "b1"));
    Judged("int c;", R"({"problem":"softmax","size":"large"})", VerdictWith(3, "c1"));
  }
  void Judged(const std::string& source, const std::string& terms, const Verdict& verdict) {
    ASSERT_TRUE(
        store_->Append(RecordsOfVerdict({"kernel.cpp", source, "softmax", terms}, verdict)));
  }
  // The ids of the verdicts on sources that are looked at, "-": none, and free.
  static std::vector<std::string> Look(RecordedVerdicts& verdicts,
                                       const std::vector<std::string>& sources, bool confirms) {
    for (const std::string& source : sources)
      verdicts.Add({source, CandidateFromText("kernel.cpp", source).value(), confirms});
    std::vector<std::string> ids;
    for (auto judged = verdicts.Wait(0); !judged->empty(); judged = verdicts.Wait(0))
      for (const JudgedTask& each : *judged) {
        EXPECT_EQ(each.is_free, !each.verdict);
        ids.push_back(each.verdict ? each.verdict->id : "-");
      }
    return ids;
  }

  TemporaryFolder folder_;
  std::unique_ptr<SqliteStore> store_;
};

TEST_F(RecordedVerdictsTest, AreFoundBySourceAndLook) {
  auto verdicts = RecordedVerdicts::Read(*store_, "softmax", kFirstLonger, kSecond);
  ASSERT_TRUE(verdicts);
  EXPECT_EQ(verdicts->screened(), 2u);
  EXPECT_EQ(verdicts->confirmed(), 1u);
  const std::vector<std::string> sources{"int a;", "int b;", "int c;"};
  EXPECT_EQ(Look(*verdicts, sources, false), (std::vector<std::string>{"a1", "b1", "-"}));
  EXPECT_EQ(Look(*verdicts, sources, true), (std::vector<std::string>{"a3", "-", "-"}));
}

TEST_F(RecordedVerdictsTest, OnOtherTermsThereAreNone) {
  const auto verdicts = RecordedVerdicts::Read(
      *store_, "softmax", R"({"problem":"softmax","size":"small","one_size":true})", kSecond);
  ASSERT_FALSE(verdicts);
  EXPECT_EQ(verdicts.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(verdicts.error().message, HasSubstr("no first look"));
}

}  // namespace
}  // namespace assay
