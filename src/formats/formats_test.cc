#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "formats/evaluators.h"
#include "formats/foreign_rows.h"
#include "formats/python_text.h"
#include "formats/results_out.h"
#include "formats/safetensors.h"
#include "model/sample_verdicts.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;

TEST(CsvTest, QuotedFieldsKeepLinesAndQuotes) {
  const auto rows = ParseCsv("a,b\r\n\"one\nline, \"\"two\"\"\",\r\nx,\"\"\n");
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[0]["a"], "one\nline, \"two\"");
  EXPECT_EQ((*rows)[0]["b"], "");
  EXPECT_EQ((*rows)[1]["b"], "");
}

TEST(CsvTest, RefusesUnevenRowsAndOpenQuotes) {
  EXPECT_THAT(ParseCsv("a,b\n1\n").error().message, HasSubstr("row 1 has 1 fields"));
  EXPECT_FALSE(ParseCsv("a\n\"open\n"));
  EXPECT_FALSE(ParseCsv(""));
}

std::string StoredFile(const std::string& header, const std::string& bytes) {
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  return file + header + bytes;
}

TEST(SafetensorsTest, ReadsATensor) {
  const auto tensor = ReadStoredTensor(
      StoredFile(R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", "abc"), "x");
  ASSERT_TRUE(tensor) << tensor.error().message;
  EXPECT_EQ(tensor->dtype, "uint8");
  EXPECT_EQ(tensor->bytes, "bc");
}

TEST(SafetensorsTest, RefusesWhatDoesNotFit) {
  for (const char* header : {R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
                             R"({"x":{"dtype":"U8","shape":[3],"data_offsets":[1,3]}})",
                             R"({"x":{"dtype":"U8","shape":[-2],"data_offsets":[1,3]}})",
                             R"({"x":{"dtype":"F4","shape":[2],"data_offsets":[1,3]}})",
                             R"({"y":{}})", R"({"x":{"dtype":"U8"}})", "no JSON"})
    EXPECT_FALSE(ReadStoredTensor(StoredFile(header, "abc"), "x")) << header;
  EXPECT_FALSE(ReadStoredTensor("short", "x"));
  EXPECT_FALSE(ReadStoredTensor(std::string(8, '\xff') + "x", "x"));
}

TEST(PythonTextTest, LiteralsAreThoseOfPython) {
  EXPECT_EQ(PythonLiteral(Json::parse(R"({"a": [true, null, 1.5, "x\"\n"]})")),
            R"({"a": [True, None, 1.5, "x\"\n"]})");
}

TEST(PythonTextTest, TheSameFilesGiveTheSameFolder) {
  EXPECT_EQ(PythonFiles({{"a.py", "x = 1"}}), PythonFiles({{"a.py", "x = 1"}}));
  EXPECT_NE(PythonFiles({{"a.py", "x = 1"}}), PythonFiles({{"a.py", "x = 2"}}));
}

// A run of one candidate, and the origin of its import.
struct JudgedRun {
  std::vector<RunRow> rows;
  std::string origins;
};

JudgedRun RunOf(const Verdict& verdict, const Json& origin) {
  RunRow row;
  row.candidate = "out/candidates/mine.py";
  row.verdict = verdict;
  return {{row}, Json({{"candidate", "candidates/mine.py"}, {"origin", origin}}).dump() + "\n"};
}

TEST(ResultsOutTest, TracesHaveTimesOfWhatPassed) {
  const Json origin = {{"format", "flashinfer"},     {"layout", "flashinfer-trace"},
                       {"definition", "gather"},     {"op_type", "../up"},
                       {"solution", "mine"},         {"author", "example"},
                       {"workload", {{"uuid", "7"}}}};
  const JudgedRun run = RunOf(SampleVerdict(Outcome::kFaster), origin);
  const auto judged = PairWithOrigins(run.rows, run.origins);
  ASSERT_TRUE(judged) << judged.error().message;
  const ExportedFiles files = FlashInferTraces(*judged);
  ASSERT_THAT(files, ElementsAre(Key("traces/example/.._up/gather.jsonl")));
  const Json trace = Json::parse(files.begin()->second);
  EXPECT_EQ(trace["workload"]["uuid"], "7");
  EXPECT_EQ(trace["evaluation"]["status"], "PASSED");
  const BaselineResult& headline =
      run.rows[0].verdict->speed->baselines.at(run.rows[0].verdict->speed->headline);
  EXPECT_EQ(trace["evaluation"]["performance"]["speedup_factor"], headline.speedup);
  EXPECT_TRUE(PopcornResults(*judged).empty());
}

TEST(ResultsOutTest, OnlyOneLayoutHasAWordForCheats) {
  Verdict foul = SampleVerdict(Outcome::kFaster);
  foul.outcome = Outcome::kFoul;
  for (const auto& [layout, status] : {std::pair("flashinfer-trace", "RUNTIME_ERROR"),
                                       std::pair("sol-execbench", "REWARD_HACK")}) {
    const Json origin = {{"format", "flashinfer"},
                         {"layout", layout},
                         {"definition", "gather"},
                         {"solution", "mine"},
                         {"workload", Json::object()}};
    const JudgedRun run = RunOf(foul, origin);
    const auto files = FlashInferTraces(*PairWithOrigins(run.rows, run.origins));
    const Json trace = Json::parse(files.begin()->second);
    EXPECT_EQ(trace["evaluation"]["status"], status);
    EXPECT_TRUE(trace["evaluation"]["performance"].is_null());
  }
}

TEST(ResultsOutTest, PopcornResultsGiveEachCaseItsTimes) {
  const Json origin = {{"format", "popcorn"}, {"submission", "x/mine.py"}, {"spec", "size: 16"}};
  const JudgedRun run = RunOf(SampleVerdict(Outcome::kFaster), origin);
  const auto files = PopcornResults(*PairWithOrigins(run.rows, run.origins));
  ASSERT_THAT(files, ElementsAre(Key("results/mine.json")));
  const Json result = Json::parse(files.begin()->second);
  EXPECT_EQ(result["runs"]["test"]["run"]["result"]["test.0.status"], "pass");
  const Json& benchmark = result["runs"]["benchmark"]["run"]["result"];
  EXPECT_EQ(benchmark["benchmark.0.spec"], "size: 16");
  EXPECT_GT(std::stod(benchmark["benchmark.0.mean"].get<std::string>()), 0);
  EXPECT_EQ(benchmark["check"], "pass");
}

TEST(ResultsOutTest, RefusesLinesThatAreNoOrigins) {
  EXPECT_FALSE(PairWithOrigins({}, "{}\n"));
  EXPECT_TRUE(PairWithOrigins({}, "")->empty());
}

TEST(EvaluatorsTest, TemplatesAreFilledForEachKind) {
  const std::string templates = std::string(ASSAY_SOURCE_DIRECTORY) + "/exports";
  const EvaluatorTerms terms{"Soft max", {"softmax", "--size", "tiny"}, "x = 1", ".py"};
  for (const std::string_view kind : EvaluatorKinds()) {
    const auto files = EvaluatorFiles(kind, templates, terms);
    ASSERT_TRUE(files) << files.error().message;
    std::string all;
    for (const auto& [path, text] : *files) all += text;
    EXPECT_THAT(all, HasSubstr(R"(ARGUMENTS = ["softmax", "--size", "tiny"])")) << kind;
    EXPECT_EQ(all.find("@NAME@"), std::string::npos) << kind;
    EXPECT_EQ(all.find("@SUFFIX@"), std::string::npos) << kind;
    const char* initial = kind == "shinka" ? "initial.py" : "initial_program.py";
    EXPECT_EQ(files->contains(initial), TakesInitialProgram(kind)) << kind;
  }
  EXPECT_FALSE(EvaluatorFiles("openenv", "/nonexistent", terms));
}

TEST(EvaluatorsTest, ShinkaHasNoProgramsInC) {
  const std::string templates = std::string(ASSAY_SOURCE_DIRECTORY) + "/exports";
  const EvaluatorTerms terms{"softmax", {"softmax"}, "int x;", ".c"};
  EXPECT_TRUE(EvaluatorFiles("openevolve", templates, terms));
  const auto refused = EvaluatorFiles("shinka", templates, terms);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("--form native"));
}

}  // namespace
}  // namespace assay
