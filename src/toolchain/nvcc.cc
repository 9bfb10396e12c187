#include "toolchain/nvcc.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "toolchain/nvrtc.h"
#include "toolchain/tool_version.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr auto kPlainFlags = std::to_array<std::string_view>(
    {"-O0", "-O1", "-O2", "-O3", "-expt-relaxed-constexpr", "--expt-relaxed-constexpr",
     "-extended-lambda", "--extended-lambda", "-expt-extended-lambda", "--expt-extended-lambda"});
constexpr auto kLibraries = std::to_array<std::string_view>({"-lcublas", "-lcublasLt"});
// NVRTC's, which nvcc does not have or kernel.h does not compile with.
constexpr auto kOfNvrtcAlone =
    std::to_array<std::string_view>({"-default-device", "-std=c++11", "-std=c++14"});

template <size_t N>
bool Contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool HasHeaders(const fs::path& toolkit) {
  std::error_code code;
  for (const char* folder :
       {"include", "targets/x86_64-linux/include", "targets/sbsa-linux/include"})
    if (fs::exists(toolkit / folder / "cuda_runtime.h", code)) return true;
  return false;
}

std::string LibrariesOf(const fs::path& toolkit) {
  std::error_code code;
  for (const char* folder : {"lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib", "lib"})
    if (fs::exists(toolkit / folder / "libcudart_static.a", code))
      return (toolkit / folder).string();
  return {};
}

// nvcc in a folder, with what is beside it; empty: none that would run in the sandbox, which shows
// /usr and the toolkit alone.
Nvcc NvccIn(const fs::path& folder) {
  std::error_code code;
  const fs::path path = fs::canonical(folder / "nvcc", code);
  // The last of the links of a caching wrapper has another name.
  if (code || path.filename() != "nvcc" || ::access(path.c_str(), X_OK) != 0) return {};
  const fs::path toolkit = path.parent_path().parent_path();
  if (!path.string().starts_with("/usr/") && !HasHeaders(toolkit)) return {};
  return {path.string(), "", toolkit.string(), LibrariesOf(toolkit)};
}

std::optional<Nvdisasm> NvdisasmIn(const fs::path& folder) {
  std::error_code code;
  const fs::path path = fs::canonical(folder / "nvdisasm", code);
  if (code || path.filename() != "nvdisasm" || ::access(path.c_str(), X_OK) != 0)
    return std::nullopt;
  return Nvdisasm{path.string(), path.parent_path().parent_path().string()};
}

// The line with the release; the first one names the program.
std::string ReleaseLine(const std::string& text) {
  const size_t at = text.find("release ");
  if (at == std::string::npos) return text.substr(0, text.find('\n'));
  const size_t begin = text.rfind('\n', at);
  const std::string line = text.substr(begin == std::string::npos ? 0 : begin + 1);
  return line.substr(0, line.find('\n'));
}

}  // namespace

std::vector<std::string> ToolkitFolders(const std::string& usual_folder) {
  std::vector<std::string> folders;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* value = ::getenv(name); value != nullptr && value[0] == '/')
      folders.push_back((fs::path(value) / "bin").string());
  const char* variable = ::getenv("PATH");
  std::string_view left = variable != nullptr ? variable : "";
  while (!left.empty()) {
    const size_t end = left.find(':');
    if (left[0] == '/') folders.emplace_back(left.substr(0, end));
    left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
  }
  folders.emplace_back(usual_folder);
  return folders;
}

Result<Nvcc> FindNvcc(const std::string& usual_folder) {
  for (const fs::path folder : ToolkitFolders(usual_folder)) {
    Nvcc nvcc = NvccIn(folder);
    if (nvcc.path.empty()) continue;
    ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadVersionText(nvcc.path));
    nvcc.version = ReleaseLine(text);
    return nvcc;
  }
  return EnvironmentError(
      fmt::format("there is no nvcc (CUDA's compiler), which a candidate in CUDA with ASSAY_KERNEL "
                  "needs, in $CUDA_HOME/bin, $PATH or {}: install a CUDA toolkit, or set CUDA_HOME "
                  "to one",
                  usual_folder));
}

std::optional<Nvdisasm> FindNvdisasm(const std::string& usual_folder) {
  for (const fs::path folder : ToolkitFolders(usual_folder))
    if (auto found = NvdisasmIn(folder)) return found;
  return std::nullopt;
}

std::optional<Nvdisasm> FindNvdisasmInPackages(const std::vector<std::string>& folders) {
  std::error_code code;
  for (const fs::path folder : folders) {
    // nvidia/cu13/bin, nvidia/cuda_nvcc/bin...
    for (const auto& package : fs::directory_iterator(folder / "nvidia", code))
      if (auto found = NvdisasmIn(package.path() / "bin")) return found;
    if (auto found = NvdisasmIn(folder / "triton/backends/nvidia/bin")) return found;
  }
  return std::nullopt;
}

std::vector<std::string> NvccCommand(const Nvcc& nvcc, const std::vector<std::string>& flags,
                                     std::string_view architecture, const std::string& input,
                                     const std::string& output) {
  const auto has = [&](std::string_view prefix) {
    return std::any_of(flags.begin(), flags.end(),
                       [&](const std::string& flag) { return flag.starts_with(prefix); });
  };
  const std::string_view number = architecture.substr(architecture.find('_') + 1);
  std::vector<std::string> command{nvcc.path,
                                   fmt::format("-gencode=arch=compute_{0},code=sm_{0}", number)};
  // nvcc refuses an option that is given twice.
  if (!has("-O")) command.push_back("-O3");
  // nvcc's and NVRTC's own. A small kernel takes 1.2 times as long to compile in C++20, for the
  // sake of libstdc++'s headers (bench/results/cpu-2core/nvcc_standards.jsonl).
  if (!has("-std=")) command.push_back("-std=c++17");
  // Uncompressed code can be read again (toolchain/cubin.h).
  command.insert(command.end(),
                 {"-no-compress", "-shared", "-Xcompiler=-fPIC,-fvisibility=hidden,-fmax-errors=3",
                  "-cudart=static", "-I/assay/include"});
  command.insert(command.end(), flags.begin(), flags.end());
  if (!nvcc.libraries.empty() && std::any_of(flags.begin(), flags.end(), IsCudaLibrary))
    // The old kind of path: libraries that a library needs are looked for there, too.
    command.push_back("-Xlinker=--disable-new-dtags,-rpath=" + nvcc.libraries);
  // A symbol that nothing defines is an error of the build, with its name.
  command.insert(command.end(), {"-Xlinker=-z,defs", "-o", output, input});
  return command;
}

bool IsCudaLibrary(std::string_view flag) { return Contains(kLibraries, flag); }

bool IsAllowedForNvcc(std::string_view flag) {
  if (Contains(kPlainFlags, flag) || IsCudaLibrary(flag)) return true;
  return IsAllowedForDevice(flag) && !Contains(kOfNvrtcAlone, flag);
}

}  // namespace assay
