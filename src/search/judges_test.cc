#include "search/judges.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "search/search_testing.h"
#include "worker_client/event.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

class JudgesTest : public ::testing::Test {
 protected:
  static double ScoreOf(const std::string& source) {
    return static_cast<double>(source.size() % 7) / 2;
  }
  static void Add(Judges& judges, int count, bool confirms = false, int first = 0) {
    for (int i = first; i < first + count; ++i)
      judges.Add({fmt::format("{}", i),
                  CandidateFromText("a.cpp", fmt::format("int n = {};", i)).value(), confirms});
  }
  // The end of all: "verdict", or an error's message.
  std::map<std::string, std::string> Finish(Judges& judges) {
    std::map<std::string, std::string> all;
    for (int waits = 0; judges.busy() && waits < 1000; ++waits) {
      const auto judged = judges.Wait(1);
      if (!judged) {
        error_ = judged.error().message;
        break;
      }
      for (const JudgedTask& task : *judged) {
        EXPECT_FALSE(all.contains(task.key));
        all[task.key] = task.verdict ? "verdict" : task.error->message;
      }
    }
    return all;
  }
  std::string error_;
};

TEST_F(JudgesTest, WorkersShareWhatWaits) {
  ScriptedFleet fleet(ScoreOf, 2);
  Judges judges(fleet, {}, {}, {});
  Add(judges, 10);
  EXPECT_EQ(Finish(judges).size(), 10u);
  ASSERT_EQ(fleet.requests.size(), 2u);
  EXPECT_EQ(Json::parse(fleet.requests[0])["candidates"].size(), 5u);
}

TEST_F(JudgesTest, ABatchHasSixteenAtMost) {
  ScriptedFleet fleet(ScoreOf);
  Judges judges(fleet, {}, {}, {});
  Add(judges, 40);
  EXPECT_EQ(Finish(judges).size(), 40u);
  ASSERT_EQ(fleet.requests.size(), 3u);
  EXPECT_EQ(Json::parse(fleet.requests[0])["candidates"].size(), 16u);
}

TEST_F(JudgesTest, AConfirmationIsAloneInAWorkerOfItsOwn) {
  ScriptedFleet fleet(ScoreOf);
  Judges judges(fleet, {}, {}, {});
  Add(judges, 2);
  Finish(judges);
  EXPECT_EQ(fleet.started().front(), 1);
  Add(judges, 2, true, 2);
  EXPECT_EQ(Finish(judges).size(), 2u);
  EXPECT_EQ(fleet.started().front(), 3);
  EXPECT_EQ(fleet.requests.size(), 3u);
}

TEST_F(JudgesTest, AKnownArtifactHasNoVerdictButIsConfirmed) {
  ScriptedFleet fleet(ScoreOf);
  fleet.artifact = [](const std::string&) { return std::string(64, 'a'); };
  Judges judges(fleet, {}, {}, {});
  judges.Know(std::string(64, 'a'));
  judges.Add({"0", CandidateFromText("a.cpp", "int n;").value(), false});
  judges.Add({"1", CandidateFromText("a.cpp", "int n;").value(), true});
  std::map<std::string, JudgedTask> ends;
  for (int waits = 0; judges.busy() && waits < 1000; ++waits) {
    const auto judged = judges.Wait(1);
    ASSERT_TRUE(judged) << judged.error().message;
    for (const JudgedTask& task : *judged) ends[task.key] = task;
  }
  EXPECT_EQ(ends.at("0").known, std::string(64, 'a'));
  EXPECT_FALSE(ends.at("0").verdict);
  EXPECT_TRUE(ends.at("1").verdict);
}

TEST_F(JudgesTest, AWorkersDeathIsTheFirstCandidatesAlone) {
  ScriptedFleet fleet(ScoreOf);
  fleet.trouble = [](const std::string& line) -> std::optional<std::vector<std::string>> {
    const std::string first = Json::parse(line)["candidates"][0]["source"];
    if (first != "int n = 0;") return std::nullopt;
    return std::vector<std::string>{ScriptedFleet::kDies};
  };
  Judges judges(fleet, {}, {}, {});
  Add(judges, 3);
  const auto all = Finish(judges);
  EXPECT_THAT(all.at("0"), HasSubstr("was killed by signal 9"));
  EXPECT_EQ(all.at("1"), "verdict");
  EXPECT_EQ(all.at("2"), "verdict");
}

TEST_F(JudgesTest, AWrongFirstRequestEndsAll) {
  ScriptedFleet fleet(ScoreOf);
  fleet.trouble = [](const std::string& line) {
    return std::optional(std::vector{
        ErrorLine(Json::parse(line)["id"], {ErrorKind::kUsage, "there is no such problem"})});
  };
  Judges judges(fleet, {}, {}, {});
  Add(judges, 2);
  Result<std::vector<JudgedTask>> heard;
  while (heard && heard->empty()) heard = judges.Wait(0);
  ASSERT_FALSE(heard);
  EXPECT_EQ(heard.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(heard.error().message, "there is no such problem");
  EXPECT_EQ(fleet.requests.size(), 1u);
}

TEST_F(JudgesTest, GarbageFromAWorkerIsPassedOver) {
  ScriptedFleet fleet(ScoreOf);
  fleet.trouble = [&](const std::string& line) -> std::optional<std::vector<std::string>> {
    const std::string id = Json::parse(line)["id"];
    return std::vector<std::string>{"garbage",
                                    "[]",
                                    R"({"event":"verdict","id":"77","candidate":0})",
                                    VerdictLine(id, 9, VerdictWith(1, "a")),
                                    VerdictLine(id, 0, VerdictWith(1, "a")),
                                    VerdictLine(id, 0, VerdictWith(2, "b")),
                                    DoneLine(id)};
  };
  Judges judges(fleet, {}, {}, {});
  Add(judges, 1);
  EXPECT_EQ(Finish(judges).at("0"), "verdict");
}

}  // namespace
}  // namespace assay
