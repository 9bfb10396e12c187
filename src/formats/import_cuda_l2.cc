#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/files.h"
#include "formats/foreign_rows.h"
#include "formats/import_kinds.h"
#include "formats/python_text.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kSourceBytesMax = 4 << 20;

struct Sizes {
  int64_t m = 0, n = 0, k = 0;
};

// M, N and K of "1024_64_4096.cu".
std::optional<Sizes> SizesOf(const fs::path& path) {
  static const std::regex kForm("([0-9]{1,7})_([0-9]{1,7})_([0-9]{1,7})");
  std::smatch match;
  const std::string stem = path.stem().string();
  if (path.extension() != ".cu" || !std::regex_match(stem, match, kForm)) return std::nullopt;
  return Sizes{std::stoll(match[1]), std::stoll(match[2]), std::stoll(match[3])};
}

// The tile's side that the kernel names, such as BM = Int<128>; 0: none.
int64_t Tile(const std::string& source, const char* name) {
  std::smatch match;
  return std::regex_search(source, match,
                           std::regex(fmt::format(R"({}\s*=\s*Int<\s*([0-9]{{1,5}})\s*>)", name)))
             ? std::stoll(match[1])
             : 0;
}

// The argument that the kernel reads: its function gets the second matrix twice. Most read the
// columns, so that is what one reads of which nothing is seen.
bool ReadsColumns(const std::string& source) {
  static const std::regex kRows(R"(\bb\s*\.\s*(mutable_|const_)?data_ptr)");
  static const std::regex kColumns(R"(\bb_col_major\s*\.\s*(mutable_|const_)?data_ptr)");
  return std::regex_search(source, kColumns) || !std::regex_search(source, kRows);
}

// The second matrix is given as the kernel reads it, row by row or column by column: nobody
// transposes it within the clock.
std::string ProblemText(const Sizes& sizes, bool columns) {
  return fmt::format(
      R"("""C = A B in half precision; B is given by its {order}."""

import torch
import torch.nn as nn

M = {m}
N = {n}
K = {k}


class Model(nn.Module):
    def forward(self, a: torch.Tensor, {name}: torch.Tensor) -> torch.Tensor:
        """a: (M, K), {name}: {shape}. Returns (M, N)."""
        return torch.matmul(a, {matrix})


def get_inputs():
    return [torch.randn(M, K, dtype=torch.half), torch.randn{shape_value}]


def get_init_inputs():
    return []
)",
      fmt::arg("order", columns ? "columns" : "rows"), fmt::arg("m", sizes.m),
      fmt::arg("n", sizes.n), fmt::arg("k", sizes.k), fmt::arg("name", columns ? "b_columns" : "b"),
      fmt::arg("shape", columns ? "(N, K)" : "(K, N)"),
      fmt::arg("matrix", columns ? "b_columns.t()" : "b"),
      fmt::arg("shape_value", columns ? "(N, K, dtype=torch.half)" : "(K, N, dtype=torch.half)"));
}

// forward() of a candidate: it hands over the second matrix as it was given, in both places.
std::string ForwardText(bool columns) {
  if (columns)
    return R"(    def forward(self, a, b_columns):
        rows, columns = a.shape[0], b_columns.shape[0]
        a = padded(a, TILES[0], TILES[2])
        b_columns = padded(b_columns, TILES[1], TILES[2])
        b = b_columns.view(b_columns.shape[1], b_columns.shape[0])
        c = torch.empty(a.shape[0], b_columns.shape[0], dtype=a.dtype, device=a.device)
        extension.run(a, b_columns.t(), b, c)
)";
  return R"(    def forward(self, a, b):
        rows, columns = a.shape[0], b.shape[1]
        a = padded(a, TILES[0], TILES[2])
        b = padded(b, TILES[2], TILES[1])
        c = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype, device=a.device)
        extension.run(a, b, b, c)
)";
}

// A kernel loads whole tiles, so sizes that are no multiples of them are padded within the call.
std::string CandidateText(const std::string& source, const std::string& function,
                          const std::array<int64_t, 3>& tiles, bool columns) {
  const std::string bound = fmt::format(
      "#include <torch/extension.h>\n{}\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ "
      "m.def(\"run\", "
      "&{}); }}\n",
      source, function);
  const std::string options = R"(    extra_cuda_cflags=[
        "-O3",
        "-std=c++17",
        "-U__CUDA_NO_HALF_OPERATORS__",
        "-U__CUDA_NO_HALF_CONVERSIONS__",
        "-U__CUDA_NO_HALF2_OPERATORS__",
        "-U__CUDA_NO_BFLOAT16_CONVERSIONS__",
        "--expt-relaxed-constexpr",
        "--expt-extended-lambda",
        "--use_fast_math",
    ],
    extra_include_paths=[CUTLASS] if CUTLASS else [],)";
  return fmt::format(R"(import glob
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

# Headers of CUTLASS: in the system's folders, or of the package nvidia-cutlass.
PLACES = ["/usr/local/include", "/usr/include"]
PLACES += [place + "/cutlass_library/source/include" for place in sys.path]
CUTLASS = next((place for place in PLACES if glob.glob(place + "/cute/tensor.hpp")), "")

{}
TILES = ({}, {}, {})  # of M, N and K


def padded(matrix, rows, columns):
    missing = (-matrix.shape[0] % rows, -matrix.shape[1] % columns)
    return F.pad(matrix, (0, missing[1], 0, missing[0])) if any(missing) else matrix


class ModelNew(nn.Module):
{}        return c if c.shape == (rows, columns) else c[:rows, :columns].contiguous()
)",
                     PythonExtension(bound, true, options), tiles[0], tiles[1], tiles[2],
                     ForwardText(columns));
}

// (folder's name, M_N_K) -> the claimed speedup over torch.matmul, of the eval_results/ in `path`,
// a checkout, or in the checkout that it lies in: checkout/kernels/SET/M_N_K.cu.
std::map<std::string, double> Claims(const fs::path& path) {
  std::map<std::string, double> claims;
  std::error_code code;
  fs::path root = fs::canonical(path, code);
  for (int level = 0; level < 3 && !fs::is_directory(root / "eval_results", code); ++level)
    root = root.parent_path();
  for (fs::directory_iterator entry(root / "eval_results", code), end; !code && entry != end;
       entry.increment(code)) {
    static const std::regex kForm("cuda_l2_(.+)_speedup_offline\\.csv");
    std::smatch match;
    const std::string name = entry->path().filename().string();
    if (!std::regex_match(name, match, kForm)) continue;
    const auto text = ReadFile(entry->path(), size_t{64} << 20);
    const auto rows = text ? ParseCsv(*text) : std::vector<Json>();
    if (!rows) continue;
    for (const Json& row : *rows)
      if (const Json claimed = NumberOf(row, "torch.matmul"); claimed.is_number())
        claims[match[1].str() + "/" + TextOf(row, "mnk")] = claimed.get<double>();
  }
  return claims;
}

}  // namespace

Result<Imported> ImportCudaL2(const ImportRequest& request) {
  const fs::path root(request.paths.front());
  std::vector<fs::path> files;
  std::error_code code;
  if (fs::is_directory(root, code)) {
    for (fs::recursive_directory_iterator entry(root, code), end; !code && entry != end;
         entry.increment(code))
      if (SizesOf(entry->path())) files.push_back(entry->path());
    if (code) return UsageError(fmt::format("cannot list {}: {}", root.string(), code.message()));
  } else if (SizesOf(root)) {
    files.push_back(root);
  }
  std::sort(files.begin(), files.end());
  const std::map<std::string, double> claims = Claims(root);
  Imported imported;
  for (const fs::path& file : files) {
    if (request.limit > 0 && imported.candidates.size() >= request.limit) break;
    ASSAY_ASSIGN_OR_RETURN(const std::string source, ReadFile(file, kSourceBytesMax));
    static const std::regex kEntry(R"(void\s+(cuda_l2_\w+)\s*\(\s*torch::Tensor)");
    std::smatch match;
    if (!std::regex_search(source, match, kEntry)) {
      imported.left_out.push_back(
          fmt::format("{}: no function cuda_l2_... that takes tensors", file.string()));
      continue;
    }
    const Sizes sizes = *SizesOf(file);
    const std::array<int64_t, 3> tiles = {Tile(source, "BM"), Tile(source, "BN"),
                                          Tile(source, "BK")};
    const std::string set = file.parent_path().filename().string();
    const std::string stem = file.stem().string();
    Json origin = {{"format", "cuda-l2"}, {"set", set}, {"mnk", stem}};
    const auto claim = claims.find(set + "/" + stem);
    origin["claimed_speedup"] = claim == claims.end() ? Json() : Json(claim->second);
    const bool columns = ReadsColumns(source);
    const size_t problem = imported.AddProblem(
        fmt::format("hgemm_{}{}", stem, columns ? "" : "_rows"), ProblemText(sizes, columns));
    imported.AddCandidate(
        problem, fmt::format("{}_{}", set, stem),
        CandidateText(source, match[1],
                      {std::max<int64_t>(tiles[0], 1), std::max<int64_t>(tiles[1], 1),
                       std::max<int64_t>(tiles[2], 1)},
                      columns),
        origin.dump());
  }
  return imported;
}

}  // namespace assay
