#include "formats/imported.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/files.h"
#include "formats/import_kinds.h"
#include "problem/nearest.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kNameLengthMax = 80;

// A file's name of letters, digits, '_' and '-'.
std::string SafeName(std::string_view text) {
  std::string name;
  for (const char c : text.substr(0, kNameLengthMax))
    name += std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' ? c : '_';
  return name.empty() ? "unnamed" : name;
}

// `name`, or else the first of name_2, name_3... that is free.
template <typename Items>
std::string FreeName(std::string_view text, const Items& items) {
  const std::string name = SafeName(text);
  std::string free = name;
  const auto taken = [&] {
    return std::any_of(items.begin(), items.end(),
                       [&](const auto& item) { return item.name == free; });
  };
  for (int number = 2; taken(); ++number) free = fmt::format("{}_{}", name, number);
  return free;
}

}  // namespace

namespace {

// Values of a foreign file may be of any kind: the library throws where one is not as expected.
Result<Imported> Checked(const ImportFormat& format, const ImportRequest& request) {
  try {
    return format.import(request);
  } catch (const Json::exception& error) {
    return UsageError(fmt::format("{} is not in the layout of {}: {}", request.paths.front(),
                                  format.kind, error.what()));
  }
}

}  // namespace

size_t Imported::AddProblem(std::string_view name, std::string text) {
  const std::string safe = SafeName(name);
  for (size_t i = 0; i < problems.size(); ++i)
    if (problems[i].text == text && problems[i].name.starts_with(safe)) return i;
  problems.push_back({FreeName(name, problems), std::move(text)});
  return problems.size() - 1;
}

void Imported::AddCandidate(size_t problem, std::string_view name, std::string text,
                            std::string origin) {
  candidates.push_back({problem, FreeName(name, candidates), std::move(text), std::move(origin)});
}

const std::vector<ImportFormat>& ImportFormats() {
  static const std::vector<ImportFormat> formats = {
      {"cuda-l1", "JSON lines of optimized_cuda_code/, or a file of codes/", ImportCudaL1},
      {"cuda-l2", "a .cu file M_N_K.cu, a folder of them, or a checkout", ImportCudaL2},
      {"robust-kbench", "a folder tasks/NAME, or a checkout with tasks/ and highlighted/",
       ImportRobustKbench},
      {"kernelbench-hard", "a folder of problems, such as benchmarks/hard/problems-h100",
       ImportKernelBenchHard},
      {"kernelbook", "rows with python_code and triton_code: .json, .jsonl, .csv or .parquet",
       ImportKernelBook},
      {"ai-cuda-engineer", "rows of the archive: .json, .jsonl, .csv or .parquet",
       ImportAiCudaEngineer},
      {"popcorn", "a folder with task.yml, then submissions: files or folders", ImportPopcorn},
      {"flashinfer", "a tree with definitions/, workloads/ and solutions/, or definition.json",
       ImportFlashInfer},
  };
  return formats;
}

Result<Imported> Import(std::string_view kind, const ImportRequest& request) {
  std::vector<std::string> known;
  for (const ImportFormat& format : ImportFormats()) {
    known.emplace_back(format.kind);
    if (format.kind != kind) continue;
    for (const std::string& path : request.paths) {
      std::error_code code;
      if (!fs::exists(path, code)) return UsageError(fmt::format("there is no {}", path));
    }
    if (request.paths.size() > 1 && kind != "popcorn")
      return UsageError(fmt::format("{} takes one path: {}", kind, format.description));
    ASSAY_ASSIGN_OR_RETURN(Imported imported, Checked(format, request));
    if (imported.candidates.empty() && imported.left_out.empty())
      return UsageError(fmt::format("nothing to import in {}: {} takes {}", request.paths.front(),
                                    kind, format.description));
    return imported;
  }
  return UsageError(fmt::format("there is no format '{}'{}; known: {}", kind,
                                Suggestion(std::string(kind), known), fmt::join(known, ", ")));
}

Result<void> WriteImported(const Imported& imported, const std::string& folder, bool force) {
  const fs::path root(folder);
  std::error_code code;
  if (!force && fs::exists(root, code) && !fs::is_empty(root, code))
    return UsageError(fmt::format(
        "{} is not empty: name another folder with -o, or add --force to write into it", folder));
  for (const ImportedProblem& problem : imported.problems)
    ASSAY_RETURN_IF_ERROR(WriteFileAtomically(root / "problems" / (problem.name + ".py"),
                                              problem.text, Durability::kFleeting));
  std::map<size_t, int64_t> samples;
  std::string manifest, origins;
  for (const ImportedCandidate& candidate : imported.candidates) {
    const std::string file = fmt::format("candidates/{}.py", candidate.name);
    ASSAY_RETURN_IF_ERROR(WriteFileAtomically(root / file, candidate.text, Durability::kFleeting));
    const Json line = {
        {"candidate", file},
        {"problem", fmt::format("problems/{}.py", imported.problems[candidate.problem].name)},
        {"sample", samples[candidate.problem]++}};
    manifest += line.dump() + "\n";
    Json origin = line;
    origin["origin"] = Json::parse(candidate.origin);
    origins += origin.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  ASSAY_RETURN_IF_ERROR(WriteFileAtomically(root / kOriginName, origins));
  return WriteFileAtomically(root / kManifestName, manifest);
}

}  // namespace assay
