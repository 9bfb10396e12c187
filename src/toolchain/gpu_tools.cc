// Theory of operation. CUDA's bin folder has a script that looks for the tool's installation
// elsewhere, which the sandbox does not show. So this file finds the installation, by a part that
// no other folder has, and its program is run.
#include "toolchain/gpu_tools.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "toolchain/nvcc.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

struct ToolNames {
  const char* program;
  const char* variable;
  const char* part;  // of an installation, beside the program
  const char* title;
  const char* package;
};
constexpr ToolNames kNcu = {"ncu", "ASSAY_NCU", "target", "Nsight Compute, which reads counters",
                            "Nsight Compute (Debian, Ubuntu: nsight-compute-2025.3.1 or another "
                            "version, from NVIDIA's package repository)"};
constexpr ToolNames kSanitizer = {
    "compute-sanitizer", "ASSAY_COMPUTE_SANITIZER", "libsanitizer-collection.so",
    "Compute Sanitizer",
    "a CUDA toolkit with it (Debian, Ubuntu: cuda-sanitizer-13-0 or another version, from NVIDIA's "
    "package repository)"};

bool IsProgram(const fs::path& path) {
  std::error_code code;
  return fs::is_regular_file(path, code) && ::access(path.c_str(), X_OK) == 0;
}

// The numbers of a name, for 2025.10 after 2025.9.
std::vector<int> VersionOf(const std::string& name) {
  std::vector<int> numbers;
  for (size_t at = 0; at < name.size();) {
    const size_t digits = std::min(name.find_first_not_of("0123456789", at), name.size()) - at;
    if (digits > 0 && digits < 9) numbers.push_back(std::stoi(name.substr(at, digits)));
    at += digits + 1;
  }
  return numbers;
}

// The folders in `folder`, newest first.
std::vector<fs::path> NewestFirst(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code))
    if (fs::is_directory(at->path(), code)) found.push_back(at->path());
  std::sort(found.begin(), found.end(), [](const fs::path& a, const fs::path& b) {
    return VersionOf(a.filename()) > VersionOf(b.filename());
  });
  return found;
}

// The tool in the folder of an installation; an empty path: it is none.
GpuTool Installed(const ToolNames& names, const fs::path& folder) {
  std::error_code code;
  const fs::path whole = fs::canonical(folder, code);
  if (code || !fs::exists(whole / names.part, code) || !IsProgram(whole / names.program)) return {};
  return {(whole / names.program).string(), whole.string()};
}

// The installation that a program belongs to: it lies in it, or below the same toolkit.
GpuTool InstallationOf(const ToolNames& names, const fs::path& program) {
  std::vector<fs::path> folders;
  // ncu itself is in INSTALLATION/target/PLATFORM.
  fs::path parent = program.parent_path();
  for (int level = 0; level < 3; ++level, parent = parent.parent_path()) folders.push_back(parent);
  const fs::path toolkit = program.parent_path().parent_path();
  for (const char* place : {"compute-sanitizer", "extras/compute-sanitizer"})
    folders.push_back(toolkit / place);
  for (const fs::path& folder : NewestFirst(toolkit))
    if (folder.filename().string().starts_with("nsight-compute-")) folders.push_back(folder);
  for (const fs::path& folder : NewestFirst(toolkit / "nsight-compute")) folders.push_back(folder);
  for (const fs::path& folder : folders)
    if (GpuTool tool = Installed(names, folder); !tool.path.empty()) return tool;
  return {};
}

// What the user points to is taken as it is, with its folder, where it is no part of an
// installation.
Result<GpuTool> Named(const ToolNames& names, const char* value) {
  std::error_code code;
  const fs::path program = fs::canonical(value, code);
  if (code || !IsProgram(program))
    return UsageError(
        fmt::format("{} names {}, which is no program: let it name {}, or leave it unset",
                    names.variable, value, names.program));
  GpuTool tool = InstallationOf(names, program);
  if (tool.path.empty()) tool = {program.string(), program.parent_path().string()};
  return tool;
}

Result<GpuTool> Find(const ToolNames& names, const std::string& usual_folder,
                     const std::vector<fs::path>& packages) {
  if (const char* value = ::getenv(names.variable); value != nullptr && *value != '\0')
    return Named(names, value);
  for (const std::string& folder : ToolkitFolders(usual_folder)) {
    std::error_code code;
    const fs::path program = fs::canonical(fs::path(folder) / names.program, code);
    if (code || !IsProgram(program)) continue;
    if (GpuTool tool = InstallationOf(names, program); !tool.path.empty()) return tool;
  }
  for (const fs::path& folder : packages)
    if (GpuTool tool = Installed(names, folder); !tool.path.empty()) return tool;
  return EnvironmentError(
      fmt::format("there is no {} ({}) in $CUDA_HOME/bin, $PATH or {}: install {}, or let {} name "
                  "the program",
                  names.program, names.title, usual_folder, names.package, names.variable));
}

}  // namespace

Result<GpuTool> FindNcu(const std::string& usual_folder, const std::string& packages) {
  return Find(kNcu, usual_folder, NewestFirst(fs::path(packages) / "nsight-compute"));
}

Result<GpuTool> FindComputeSanitizer(const std::string& usual_folder) {
  return Find(kSanitizer, usual_folder, {});
}

}  // namespace assay
