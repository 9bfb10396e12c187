#include "toolchain/nvrtc.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLibrary = "libnvrtc.so";
constexpr int kVersionMin = 12;  // of the library's file name: CUDA 12

constexpr auto kPlainFlags = std::to_array<std::string_view>(
    {"-use_fast_math", "--use_fast_math", "-lineinfo", "--generate-line-info", "-restrict",
     "--restrict", "-default-device", "--extra-device-vectorization",
     "-extra-device-vectorization"});
constexpr auto kSwitches =
    std::to_array<std::string_view>({"fmad", "ftz", "prec-div", "prec-sqrt"});
constexpr auto kStandards = std::to_array<std::string_view>({"c++11", "c++14", "c++17", "c++20"});

// libnvrtc.so.13 -> 13; nothing for other names, such as libnvrtc.alt.so.13.
int VersionOf(const std::string& name) {
  if (!name.starts_with(kLibrary) || name.size() <= kLibrary.size() + 1 ||
      name[kLibrary.size()] != '.')
    return 0;
  int version = 0;
  const char* begin = name.data() + kLibrary.size() + 1;
  const auto [end, error] = std::from_chars(begin, name.data() + name.size(), version);
  return error == std::errc() && end == name.data() + name.size() ? version : 0;
}

// The newest library in a folder; empty: none that is new enough.
std::string LibraryIn(const fs::path& folder) {
  std::string found;
  int newest = kVersionMin - 1;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder, code)) {
    const int version = VersionOf(entry.path().filename().string());
    if (version <= newest) continue;
    newest = version;
    found = entry.path().string();
  }
  return found;
}

}  // namespace

Result<Nvrtc> FindNvrtc() {
  std::vector<fs::path> toolkits;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* value = ::getenv(name); value != nullptr && value[0] == '/')
      toolkits.emplace_back(value);
  toolkits.emplace_back("/usr/local/cuda");
  for (const fs::path& toolkit : toolkits)
    for (const char* libraries : {"lib64", "targets/x86_64-linux/lib", "lib"}) {
      const std::string library = LibraryIn(toolkit / libraries);
      if (library.empty()) continue;
      std::error_code code;
      const fs::path include = toolkit / "include";
      return Nvrtc{library,
                   fs::exists(include / "cuda_fp16.h", code) ? include.string() : std::string(),
                   fs::canonical(toolkit, code).string()};
    }
  for (const char* folder :
       {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64"})
    if (const std::string library = LibraryIn(folder); !library.empty())
      return Nvrtc{library, "", folder};
  return EnvironmentError(
      "there is no NVRTC (CUDA's run-time compiler, 12 or newer) in $CUDA_HOME, /usr/local/cuda or "
      "the system's library folders: install a CUDA toolkit, or set CUDA_HOME to one");
}

std::vector<std::string> NvrtcCommand(const Nvrtc& nvrtc, const std::string& program,
                                      const std::string& input, const std::string& output,
                                      const std::vector<std::string>& kernels,
                                      const std::string& architecture,
                                      const std::vector<std::string>& flags,
                                      const std::map<std::string, int64_t>& macros) {
  std::vector<std::string> command{program, nvrtc.library, input, output};
  command.insert(command.end(), kernels.begin(), kernels.end());
  command.push_back("--");
  command.push_back("-arch=" + architecture);
  const bool has_standard = std::any_of(flags.begin(), flags.end(), [](const std::string& flag) {
    return flag.starts_with("-std=");
  });
  if (!has_standard) command.push_back("-std=c++17");
  if (!nvrtc.include.empty()) command.push_back("-I" + nvrtc.include);
  for (const auto& [name, value] : macros) command.push_back(fmt::format("-D{}={}", name, value));
  command.insert(command.end(), flags.begin(), flags.end());
  return command;
}

bool IsAllowedForDevice(std::string_view flag) {
  if (std::find(kPlainFlags.begin(), kPlainFlags.end(), flag) != kPlainFlags.end()) return true;
  while (flag.starts_with("--")) flag.remove_prefix(1);
  if (!flag.starts_with('-')) return false;
  const std::string_view name = flag.substr(1, flag.find('=') - 1);
  const size_t equals = flag.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view value = flag.substr(equals + 1);
  if (std::find(kSwitches.begin(), kSwitches.end(), name) != kSwitches.end())
    return value == "true" || value == "false";
  if (name == "std")
    return std::find(kStandards.begin(), kStandards.end(), value) != kStandards.end();
  if (name != "maxrregcount") return false;
  int registers = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), registers);
  return error == std::errc() && end == value.data() + value.size() && registers >= 16 &&
         registers <= 255;
}

}  // namespace assay
