// suite.toml: what is accepted keeps its promises, what is refused says where and why.
#include <filesystem>
#include <set>

#include "base/check.h"
#include "base/files.h"
#include "base/utf8.h"
#include "model/dtype.h"
#include "problem/suite.h"

namespace assay {
namespace {

// A suite's folder with the one file that the corpus names.
const std::string& Folder() {
  static const TemporaryFolder folder = [] {
    auto created = TemporaryFolder::Create();
    ASSAY_CHECK(created && WriteFileAtomically(created->path() / "a.py", "class Model: pass\n"));
    return std::move(*created);
  }();
  static const std::string path = folder.path().string();
  return path;
}

void CheckProblem(const SuiteProblem& problem) {
  ASSAY_CHECK(!problem.name.empty() && problem.name.size() <= 100 && IsUtf8(problem.name));
  ASSAY_CHECK(problem.name.find('/') == std::string::npos);
  const auto inside = std::filesystem::weakly_canonical(Folder() + "/" + problem.file).string();
  ASSAY_CHECK(inside.starts_with(std::filesystem::weakly_canonical(Folder()).string() + "/"));
  ASSAY_CHECK(problem.level >= 0 && problem.level <= 9);
  for (const auto& [constant, range] : problem.ragged)
    ASSAY_CHECK(range.first >= 1 && range.first <= range.second);
  for (const auto& [size, constants] : problem.sizes)
    for (const auto& [constant, value] : constants) {
      // What a size says goes the way of --set, and is held to the same.
      const auto setting = ParseSetting(constant + "=" + value);
      ASSAY_CHECK(setting && setting->first == constant && setting->second == value);
      for (const char c : value) ASSAY_CHECK(static_cast<unsigned char>(c) >= 0x20);
    }
  if (!problem.precision.empty()) ASSAY_CHECK(PrecisionClassFromName(problem.precision));
}

}  // namespace
}  // namespace assay

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay;
  const auto suite = ParseSuite({reinterpret_cast<const char*>(data), size}, Folder());
  if (!suite) {
    ASSAY_CHECK(suite.error().kind == ErrorKind::kUsage);
    ASSAY_CHECK(suite.error().message.find("suite.toml") != std::string::npos);
    return 0;
  }
  ASSAY_CHECK(!suite->problems.empty());
  std::set<std::string> names;
  for (const SuiteProblem& problem : suite->problems) {
    ASSAY_CHECK(names.insert(problem.name).second);
    CheckProblem(problem);
  }
  return 0;
}
