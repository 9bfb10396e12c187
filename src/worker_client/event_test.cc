#include "worker_client/event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "model/sample_verdicts.h"
#include "model/verdict_json.h"

namespace assay {
namespace {

using Kind = WorkerEvent::Kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

WorkerEvent Read(const std::string& line) {
  const auto event = ParseWorkerEvent(line);
  EXPECT_TRUE(event) << line;
  return event.value_or(WorkerEvent());
}

TEST(WorkerEvents, AreOneLineEach) {
  const ProgressEvent event{JudgeStage::kSpeed, "pair 3\n", 1.5, 1, 2};
  const std::string line = ProgressLine("7", event);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["stage"], "speed");
  EXPECT_EQ(json["fraction"], 1.0);
  EXPECT_EQ(json["candidate"], 1);
  const auto error = nlohmann::json::parse(ErrorLine("7", {ErrorKind::kEnvironment, "no GPU"}));
  EXPECT_EQ(error["kind"], "environment");
}

TEST(WorkerEvents, AreReadAsTheyWereWritten) {
  EXPECT_EQ(Read(ReadyLine("1.0")).kind, Kind::kReady);
  const WorkerEvent progress =
      Read(ProgressLine("7", {JudgeStage::kSpeed, "pair \"3\"", 0.25, 1, 2}));
  EXPECT_EQ(progress.kind, Kind::kProgress);
  EXPECT_EQ(progress.id, "7");
  EXPECT_EQ(progress.stage, "speed");
  EXPECT_EQ(progress.text, "pair \"3\"");
  EXPECT_EQ(progress.fraction, 0.25);
  EXPECT_EQ(progress.candidate, 1u);
  EXPECT_EQ(Read(ProgressLine("7", {JudgeStage::kDrawing, "", 0, 0, 0})).candidate, std::nullopt);
  const Verdict verdict = SampleVerdict(Outcome::kFaster);
  const WorkerEvent judged = Read(VerdictLine("7", 2, verdict));
  EXPECT_EQ(judged.kind, Kind::kVerdict);
  EXPECT_EQ(judged.candidate, 2u);
  EXPECT_EQ(VerdictToJson(VerdictFromJson(judged.verdict).value(), -1), VerdictToJson(verdict, -1));
  const WorkerEvent unjudged = Read(UnjudgedLine("7", 0, {ErrorKind::kUnjudged, "no CUDA"}));
  EXPECT_EQ(unjudged.kind, Kind::kUnjudged);
  EXPECT_EQ(unjudged.error.message, "no CUDA");
  const std::string line = KnownLine("7", 3, "a1");
  const WorkerEvent known = Read(line);
  EXPECT_EQ(known.kind, Kind::kKnown);
  EXPECT_EQ(known.artifact, "a1");
  EXPECT_EQ(known.line, line);
  EXPECT_EQ(Read(DoneLine("7")).kind, Kind::kDone);
  const WorkerEvent failed = Read(ErrorLine("7", {ErrorKind::kUsage, "no size huge"}));
  EXPECT_EQ(failed.kind, Kind::kFailed);
  EXPECT_EQ(failed.error.kind, ErrorKind::kUsage);
  EXPECT_EQ(failed.error.message, "no size huge");
}

TEST(WorkerEvents, ADescriptionIsAboutTheOnlyItemOfItsRequest) {
  const WorkerEvent described =
      Read(R"({"event":"description","id":"7","signature":["input x float32[2]"]})");
  EXPECT_EQ(described.kind, Kind::kDescription);
  EXPECT_EQ(described.candidate, 0u);
  EXPECT_THAT(described.signature, ElementsAre("input x float32[2]"));
}

TEST(WorkerEvents, GarbageIsNone) {
  for (const std::string line :
       {"", "garbage", "[]", "7", "{}", R"({"event":7})", R"({"event":"danced","id":"7"})",
        R"({"event":"verdict","id":"7","verdict":{}})",
        R"({"event":"verdict","id":"7","candidate":-1,"verdict":{}})",
        R"({"event":"known","id":"7","candidate":"0"})", "{\"event\":\"done\xff\"}"})
    EXPECT_FALSE(ParseWorkerEvent(line)) << line;
}

TEST(WorkerEvents, FieldsOfTheWrongKindAreEmpty) {
  const WorkerEvent event =
      Read(R"({"event":"progress","id":7,"text":[1],"fraction":"half","candidate":{}})");
  EXPECT_EQ(event.id, "");
  EXPECT_EQ(event.text, "");
  EXPECT_EQ(event.fraction, 0);
  EXPECT_EQ(event.candidate, std::nullopt);
  EXPECT_EQ(Read(R"({"event":"verdict","id":"7","candidate":0})").verdict, "");
}

TEST(WorkerEvents, AnErrorHasItsCodeBesideItsWords) {
  const std::string line = ErrorLine("1", {ErrorKind::kEnvironment, "why", ErrorCode::kTooLarge});
  EXPECT_THAT(line, HasSubstr(R"("code":"too_large")"));
  EXPECT_THAT(ErrorLine("1", {ErrorKind::kEnvironment, "why"}), testing::Not(HasSubstr("code")));
  EXPECT_EQ(Read(line).error.code, ErrorCode::kTooLarge);
  // Of 250 copies 84 were put off to the very end, as this line lacked it.
  const std::string unjudged =
      UnjudgedLine("1", 0, {ErrorKind::kUnjudged, "why", ErrorCode::kTooLarge});
  EXPECT_EQ(Read(unjudged).error.code, ErrorCode::kTooLarge);
  EXPECT_EQ(ErrorCodeFromName("unheard of"), ErrorCode::kNone);
}

}  // namespace
}  // namespace assay
