#include "problem/suite.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/dotted_keys.h"
#include "base/files.h"
#include "problem/nearest.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr const char* kSuite = R"(name = "test"
[[problem]]
name = "softmax"
file = "level1/softmax.py"
level = 1
mechanism = "row reduction"
precision = "float32"
[problem.sizes]
tiny = {ROWS = 4, COLUMNS = 8}
small = {ROWS = 1024, SCALE = 0.5, EXACT = true, NAME = "it's", SHAPE = [1, [2.0, 3]]}

[[problem]]
name = "matmul"
file = "level1/matmul.py"
tolerance = "allclose:1e-4"
)";

class SuiteTest : public testing::Test {
 protected:
  SuiteTest() {
    Write("suite.toml", kSuite);
    Write("level1/softmax.py", "ROWS = 2\n");
    Write("level1/matmul.py", "N = 2\n");
    Write("level1/other.py", "N = 3\n");
    Write("a.py", "");
    Write("b.py", "");
  }

  void Write(const std::string& name, const std::string& content) const {
    fs::create_directories((folder_->path() / name).parent_path());
    std::ofstream(folder_->path() / name, std::ios::binary) << content;
  }
  std::string Folder() const { return folder_->path().string(); }
  std::string Path(const std::string& name) const { return (folder_->path() / name).string(); }

  std::string LoadError(const std::string& content) const {
    Write("suite.toml", content);
    const auto suite = LoadSuite(Folder());
    if (suite) return "";
    EXPECT_EQ(suite.error().kind, ErrorKind::kUsage);
    return suite.error().message;
  }
  std::string ResolveError(const ProblemChoice& choice) const {
    const auto request = ResolveProblem(choice, {Folder()});
    if (request) return "";
    EXPECT_EQ(request.error().kind, ErrorKind::kUsage);
    return request.error().message;
  }

  Result<TemporaryFolder> folder_ = TemporaryFolder::Create();
};

TEST_F(SuiteTest, ReadsWhatTheJudgeAndTheListsWantToKnow) {
  Write("suite.toml",
        "name = 's'\ndescription = 'd'\n[[problem]]\nname='a'\nfile='a.py'\nlesson='l'\n"
        "flops='2 * "
        "N'\nbytes='N'\noperands='float8_e4m3fn'\nskip_draws=['ties']\nspecial_values='required'\n["
        "problem.ragged]\nN = [1, "
        "67]\n");
  const auto suite = LoadSuite(Folder());
  ASSERT_TRUE(suite) << suite.error().message;
  EXPECT_EQ(suite->description, "d");
  const SuiteProblem& problem = suite->problems[0];
  EXPECT_EQ(problem.lesson, "l");
  EXPECT_THAT(problem.ragged, ElementsAre(Pair("N", std::pair<int64_t, int64_t>(1, 67))));
  const auto request = ResolveProblem({"a", "", {}}, {Folder()});
  ASSERT_TRUE(request);
  EXPECT_EQ(request->flops, "2 * N");
  EXPECT_EQ(request->bytes, "N");
  EXPECT_EQ(request->operands, "float8_e4m3fn");
  EXPECT_THAT(request->skip_draws, ElementsAre("ties"));
  EXPECT_EQ(request->special_values, "required");
  EXPECT_EQ(FindInSuite(Path("a.py"))->lesson, "l");
  EXPECT_FALSE(FindInSuite(Path("b.py")));
}

TEST_F(SuiteTest, AProblemWhoseFileIsMissingIsNamed) {
  const std::string error = LoadError("[[problem]]\nname = 'gone'\nfile = 'level1/gone.py'\n");
  EXPECT_THAT(error, HasSubstr("line 1: problem 'gone': there is no file"));
  EXPECT_THAT(error, HasSubstr("level1/gone.py"));
}

TEST_F(SuiteTest, RangesAndListsAreChecked) {
  const std::string head = "[[problem]]\nname='a'\nfile='a.py'\n";
  for (const char* ragged :
       {"ragged = 3", "ragged = {N = 3}", "ragged = {N = [3]}", "ragged = {N = [3, 2]}",
        "ragged = {N = [0, 2]}", "ragged = {N = [1.0, 2]}", "ragged = {'A-B' = [1, 2]}"})
    EXPECT_THAT(LoadError(head + ragged), HasSubstr("line 4: 'ragged' is a table")) << ragged;
  EXPECT_THAT(LoadError(head + "skip_draws = 'ties'"), HasSubstr("must be a list of strings"));
  EXPECT_THAT(LoadError(head + "special_values = 'yes'"), HasSubstr("must be \"required\""));
  EXPECT_THAT(LoadError(head + "skip_draws = ['ties', 3]"), HasSubstr("must be a list of strings"));
}

TEST_F(SuiteTest, ReadsProblemsInTheirOrder) {
  const auto suite = LoadSuite(Folder());
  ASSERT_TRUE(suite) << suite.error().message;
  ASSERT_EQ(suite->problems.size(), 2u);
  EXPECT_EQ(suite->folder, Folder());
  const SuiteProblem& softmax = suite->problems[0];
  EXPECT_EQ(softmax.name, "softmax");
  EXPECT_EQ(softmax.file, "level1/softmax.py");
  EXPECT_EQ(softmax.level, 1);
  EXPECT_EQ(softmax.mechanism, "row reduction");
  EXPECT_EQ(softmax.precision, "float32");
  EXPECT_THAT(softmax.sizes.at("tiny"),
              UnorderedElementsAre(Pair("ROWS", "4"), Pair("COLUMNS", "8")));
  EXPECT_EQ(suite->problems[1].tolerance, "allclose:1e-4");
  EXPECT_EQ(suite->problems[1].level, 0);
  EXPECT_THAT(suite->problems[1].sizes, IsEmpty());
}

TEST_F(SuiteTest, ValuesBecomePythonLiterals) {
  const auto suite = LoadSuite(Folder());
  ASSERT_TRUE(suite);
  EXPECT_THAT(
      suite->problems[0].sizes.at("small"),
      UnorderedElementsAre(Pair("ROWS", "1024"), Pair("SCALE", "0.5"), Pair("EXACT", "True"),
                           Pair("NAME", R"('it\'s')"), Pair("SHAPE", "[1, [2.0, 3]]")));
}

TEST_F(SuiteTest, FloatsKeepTheirTypeInPython) {
  Write(
      "suite.toml",
      "[[problem]]\nname='a'\nfile='a.py'\nsizes.s={A=1.0,B=1e30,C=inf,D=-inf,E=nan,F=0.1,G=-3}\n");
  const auto suite = LoadSuite(Folder());
  ASSERT_TRUE(suite) << suite.error().message;
  EXPECT_THAT(suite->problems[0].sizes.at("s"),
              UnorderedElementsAre(Pair("A", "1.0"), Pair("B", "1e+30"), Pair("C", "float('inf')"),
                                   Pair("D", "-float('inf')"), Pair("E", "float('nan')"),
                                   Pair("F", "0.1"), Pair("G", "-3")));
}

TEST_F(SuiteTest, UnknownKeysAreToldWithTheLineAndTheNearest) {
  const std::string error = LoadError("[[problem]]\nname = 'a'\nfile = 'a.py'\nlevle = 1\n");
  EXPECT_THAT(error, HasSubstr("suite.toml line 4"));
  EXPECT_THAT(error, HasSubstr("unknown key 'levle'"));
  EXPECT_THAT(error, HasSubstr("did you mean 'level'?"));
  EXPECT_THAT(LoadError("problems = 1\n[[problem]]\nname='a'\nfile='a.py'\n"),
              HasSubstr("did you mean 'problem'?"));
  EXPECT_THAT(LoadError("[[problem]]\nname = 'a'\nfile = 'a.py'\nxyzzy = 1\n"),
              Not(HasSubstr("did you mean")));
}

TEST_F(SuiteTest, MistakesAreToldWithTheirLine) {
  const struct {
    const char* content;
    const char* expected;
  } cases[] = {
      {"[[problem]\n", "line 1: not TOML"},
      {"name = 'x'\n", "at least one [[problem]]"},
      {"problem = [1]\n", "[[problem]] table"},
      {"[[problem]]\nfile = 'a.py'\n", "needs 'name'"},
      {"[[problem]]\nname = 'a'\n", "needs 'file'"},
      {"[[problem]]\nname = 3\nfile = 'a.py'\n", "line 2: 'name' must be a non-empty string"},
      {"[[problem]]\nname = 'a b'\nfile = 'a.py'\n", "line 2: a problem's name"},
      {"[[problem]]\nname = 'a'\nfile = '../a.py'\n", "line 3: 'file' must be"},
      {"[[problem]]\nname = 'a'\nfile = '/a.py'\n", "line 3: 'file' must be"},
      {"[[problem]]\nname = 'a'\nfile = 'a.txt'\n", "line 3: 'file' must be"},
      {"[[problem]]\nname = 'a'\nfile = 'a.py'\nlevel = 0\n", "line 4: 'level' must be"},
      {"[[problem]]\nname = 'a'\nfile = 'a.py'\nlevel = 'x'\n", "line 4: 'level' must be"},
      {"[[problem]]\nname = 'a'\nfile = 'a.py'\nprecision = 'half'\n", "line 4: unknown precision"},
      {"[[problem]]\nname = 'a'\nfile = 'a.py'\ntolerance = '1e-4'\n", "line 4: 'tolerance'"},
      {"[[problem]]\nname = 'a'\nfile = 'a.py'\nsizes = 3\n", "line 4: 'sizes' must be"},
      {"[[problem]]\nname = 'a'\nfile = 'a.py'\nsizes.tiny = 3\n", "line 4: a size is written"},
      {"[[problem]]\nname = 'a'\nfile = 'a.py'\n[problem.sizes.tiny]\n'A-B' = 3\n",
       "line 5: 'A-B'"},
      {"[[problem]]\nname = 'a'\nfile = 'a.py'\n[problem.sizes.tiny]\nD = 2020-01-01\n",
       "line 5: 'D' must be"},
      {"[[problem]]\nname='a'\nfile='a.py'\n[[problem]]\nname='a'\nfile='b.py'\n",
       "line 4: a second problem is named 'a'"},
  };
  for (const auto& wrong : cases)
    EXPECT_THAT(LoadError(wrong.content), HasSubstr(wrong.expected)) << wrong.content;
}

TEST_F(SuiteTest, MissingSuiteIsAUsageError) {
  const auto suite = LoadSuite(Folder() + "/level1");
  ASSERT_FALSE(suite);
  EXPECT_EQ(suite.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(suite.error().message, HasSubstr("level1/suite.toml"));
}

TEST_F(SuiteTest, PathIsDescribedByTheNearestSuite) {
  const auto request = ResolveProblem({Path("level1/softmax.py"), "tiny", {}}, {});
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->name, "softmax");
  EXPECT_EQ(request->level, 1);
  EXPECT_EQ(request->size, "tiny");
  EXPECT_EQ(request->precision, "float32");
  EXPECT_EQ(request->source, "ROWS = 2\n");
  EXPECT_EQ(request->path, Path("level1/softmax.py"));
  EXPECT_THAT(request->set, UnorderedElementsAre(Pair("ROWS", "4"), Pair("COLUMNS", "8")));
}

TEST_F(SuiteTest, SettingsWinOverTheSize) {
  const auto request =
      ResolveProblem({Path("level1/softmax.py"), "tiny", {{"ROWS", "5"}, {"NEW", "1"}}}, {});
  ASSERT_TRUE(request);
  EXPECT_THAT(request->set,
              UnorderedElementsAre(Pair("ROWS", "5"), Pair("COLUMNS", "8"), Pair("NEW", "1")));
}

TEST_F(SuiteTest, FileThatNoSuiteListsStandsForItself) {
  const auto request = ResolveProblem({Path("level1/other.py"), "", {{"N", "7"}}}, {});
  ASSERT_TRUE(request);
  EXPECT_EQ(request->name, "other");
  EXPECT_EQ(request->level, 0);
  EXPECT_THAT(request->set, ElementsAre(Pair("N", "7")));
  EXPECT_THAT(ResolveError({Path("level1/other.py"), "tiny", {}}), HasSubstr("--set NAME=VALUE"));
}

TEST_F(SuiteTest, FileWithoutAnySuiteStandsForItself) {
  const auto alone = TemporaryFolder::Create();
  ASSERT_TRUE(alone);
  std::ofstream(alone->path() / "p.py") << "x";
  const auto request = ResolveProblem({(alone->path() / "p.py").string(), "", {}}, {});
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->name, "p");
}

// A relative path is found from the current folder, and its suite with it.
TEST_F(SuiteTest, RelativePathFindsItsSuite) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_->path() / "level1");
  const auto request = ResolveProblem({"softmax.py", "tiny", {}}, {});
  fs::current_path(before);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->name, "softmax");
  EXPECT_EQ(request->path, "softmax.py");
}

TEST_F(SuiteTest, NameIsFoundInTheInstalledSuites) {
  const auto request = ResolveProblem({"matmul", "", {}}, {Folder()});
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->path, Path("level1/matmul.py"));
  EXPECT_EQ(request->tolerance, "allclose:1e-4");
}

TEST_F(SuiteTest, UnknownNameAndSizeAreToldWithTheNearest) {
  EXPECT_THAT(ResolveError({"sofmtax", "", {}}), HasSubstr("did you mean 'softmax'?"));
  EXPECT_THAT(ResolveError({"sofmtax", "", {}}), HasSubstr("Known: softmax, matmul"));
  EXPECT_THAT(ResolveError({"conv", "", {}}), Not(HasSubstr("did you mean")));
  EXPECT_THAT(ResolveError({"softmax", "smal", {}}), HasSubstr("did you mean 'small'?"));
  EXPECT_THAT(ResolveError({"softmax", "huge", {}}), HasSubstr("It has: small, tiny"));
  EXPECT_THAT(ResolveError({"matmul", "small", {}}), HasSubstr("has no named sizes"));
  const auto nowhere = ResolveProblem({"softmax", "", {}}, {});
  ASSERT_FALSE(nowhere);
  EXPECT_THAT(nowhere.error().message, HasSubstr("no suite is installed"));
}

TEST_F(SuiteTest, MissingFileAndFolderAreUsageErrors) {
  EXPECT_THAT(ResolveError({Path("none.py"), "", {}}), HasSubstr("none.py"));
  EXPECT_THAT(ResolveError({Path("none.py"), "tiny", {}}), HasSubstr("No such file"));
  EXPECT_THAT(ResolveError({Path("level1") + "/", "", {}}), HasSubstr("not a regular file"));
}

TEST_F(SuiteTest, BrokenSuiteBesideAProblemIsTold) {
  Write("suite.toml", "[[problem]\n");
  EXPECT_THAT(ResolveError({Path("level1/softmax.py"), "", {}}), HasSubstr("not TOML"));
}

TEST(Setting, NameAndValueAreSplitAtTheFirstEquals) {
  const auto setting = ParseSetting("SHAPE=(1, 2)");
  ASSERT_TRUE(setting);
  EXPECT_THAT(*setting, Pair("SHAPE", "(1, 2)"));
  EXPECT_THAT(*ParseSetting("_a1=b=c"), Pair("_a1", "b=c"));
  for (const char* wrong : {"", "N", "N=", "N= ", "=1", "1N=2", "a-b=1", "a b=1", "a.b=1"}) {
    const auto refused = ParseSetting(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(refused.error().message, HasSubstr("NAME=VALUE"));
  }
}

// The library follows a dotted key by recursion: a file of one long key ended the program with a
// signal, whatever the file was meant for.
TEST(Suites, KeysOfThousandsOfPartsAreRefused) {
  std::string parts;
  for (int i = 0; i < 400'000; ++i) parts += "a.";
  for (const std::string& text : {parts + "b = 1\n", "\n[" + parts + "b]\n"}) {
    const auto refused = ParseSuite(text, "folder");
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("dots"));
  }
  // As deep as it may be: as many values inside each other as the library takes, each with as many
  // parts as a line may have.
  std::string deepest, end;
  for (int i = 0; i < 127; ++i) {
    deepest += "[{" + parts.substr(0, 2 * kLineDotsMax) + "b = [\n";
    end += "]}]";
  }
  EXPECT_FALSE(ParseSuite("x = " + deepest + end, "folder"));
}

// Settings travel to the hosts as JSON, which holds text alone: such a value ended the judge with
// an exception that nobody caught.
TEST(Settings, BytesThatAreNotTextAreRefused) {
  EXPECT_TRUE(ParseSetting("N='\u00e9'"));
  for (const char* wrong : {"N='\xff'", "N=\xc3", "N=\xed\xa0\x80"}) {
    const auto refused = ParseSetting(wrong);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("UTF-8"));
  }
}

TEST(Nearest, CountsInsertionsDeletionsChangesAndSwaps) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("abc", "abc"), 0u);
  EXPECT_EQ(EditDistance("abc", "abd"), 1u);
  EXPECT_EQ(EditDistance("abc", "acb"), 1u);
  EXPECT_EQ(EditDistance("abc", "ac"), 1u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
}

TEST(Nearest, FarNamesAreNotSuggested) {
  EXPECT_EQ(NearestName("softmx", {"matmul", "softmax"}), "softmax");
  EXPECT_EQ(NearestName("gelu", {"matmul", "softmax"}), "");
  EXPECT_EQ(NearestName("n", {"m"}), "m");
  EXPECT_EQ(NearestName(std::string(10'000, 'a'), {"a"}), "");
}

}  // namespace
}  // namespace assay
