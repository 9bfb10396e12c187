#include "builders/lean_headers.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "base/hash.h"
#include "base/trace.h"
#include "toolchain/build.h"
#include "toolchain/tool_version.h"

namespace assay {
namespace fs = std::filesystem;
namespace {

constexpr const char* kInside = "/assay/lean";
constexpr const char* kPrecompiledInside = "/assay/precompiled";
constexpr size_t kHeaderBytesMax = 1 << 20;
// As a builder's environment has it (HostEnvironment).
constexpr const char* kPath = "/usr/local/bin:/usr/bin:/bin";

// The version of the C++ compiler that torch's loader calls; empty: it is not GCC's.
std::string GccVersion() {
  for (const char* name : {"/usr/local/bin/c++", "/usr/bin/c++", "/bin/c++"}) {
    std::error_code code;
    if (!fs::exists(name, code)) continue;
    const auto version = ReadVersionText(name);
    return version && version->contains("Free Software Foundation") ? *version : std::string();
  }
  return {};
}

}  // namespace

Result<LeanHeaders> ReadLeanHeaders() {
  ASSAY_ASSIGN_OR_RETURN(const std::string support, SupportFolder());
  LeanHeaders headers;
  headers.folder = (fs::path(support) / "lean").string();
  std::error_code code;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(headers.folder, code))
    if (entry.path().extension() == ".h") paths.push_back(entry.path());
  if (code || paths.empty())
    return EnvironmentError(
        fmt::format("Assay's headers for extensions are missing from {}; rebuild or reinstall it",
                    headers.folder));
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> parts;
  for (const fs::path& path : paths) {
    ASSAY_ASSIGN_OR_RETURN(std::string content, ReadFile(path, kHeaderBytesMax));
    const std::string name = path.lexically_relative(headers.folder).string();
    parts.insert(parts.end(), {name, content});
    headers.files.push_back({fmt::format("{}/{}", kInside, name), std::move(content), false});
  }
  headers.hash = ArtifactCache::Key(parts);
  return headers;
}

std::string PrecompiledHeaders(const PythonRuntime& python, const LeanHeaders& headers,
                               const fs::path& all) {
  constexpr size_t kKept = 2;  // this one and one other: each takes some 500 MB
  const fs::path script =
      fs::path(headers.folder).parent_path() / "python" / "assay_host" / "precompile.py";
  const auto program = ReadFile(script, kHeaderBytesMax);
  const std::string compiler = GccVersion();
  if (!program || compiler.empty()) return {};
  const std::string key =
      ArtifactCache::Key({python.executable, python.version, python.torch_version, compiler,
                          headers.hash, *program})
          .substr(0, 16);
  return MadeOnce(all, key, [&](const fs::path& making) {
    const Span span("precompile PyTorch's headers");
    KeepYoungest(all, kKept - 1);
    return RunOutside({"/usr/bin/env", "-i", fmt::format("PATH={}", kPath), "HOME=/nonexistent",
                       "CUDA_VISIBLE_DEVICES=", "PYTHONDONTWRITEBYTECODE=1",
                       "PYTHONPYCACHEPREFIX=" + python.bytecode, python.executable, "-s",
                       script.string(), headers.folder, making.string()});
  });
}

void PreferLeanHeaders(const LeanHeaders& headers, const std::string& precompiled,
                       SandboxRequest* request) {
  request->files.insert(request->files.end(), headers.files.begin(), headers.files.end());
  std::string folders = kInside;
  if (!precompiled.empty()) {
    request->binds.push_back({precompiled, kPrecompiledInside});
    folders = fmt::format("{}:{}", kPrecompiledInside, folders);
  }
  request->environment["ASSAY_LEAN_HEADERS"] = folders;
}

std::string HeadersOf(std::string_view artifact) {
  // A tar's first file (assay_host/extensions.py).
  constexpr std::string_view kName{".assay_headers\0", 15};
  constexpr size_t kBlockBytes = 512;
  if (!artifact.starts_with(kName) || artifact.size() < 2 * kBlockBytes) return {};
  const std::string_view content = artifact.substr(kBlockBytes, 5);
  for (const std::string_view known : {"lean", "full"})
    if (content == std::string(known) + '\0') return std::string(known);
  return {};
}

}  // namespace assay
