#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "toolchain/build.h"
#include "toolchain/tool_version.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr int kLinksMax = 16;

// The sandbox shows the system's own folders alone, so a compiler elsewhere could not run there.
bool IsInSystemFolder(const fs::path& path) {
  const std::string text = path.lexically_normal().string();
  for (std::string_view folder : {"/usr/", "/bin/", "/lib/", "/lib64/"}) {
    if (text.starts_with(folder)) return true;
  }
  return false;
}

// The name under which the sandbox can start this program: the path itself, or the first of its
// symbolic links that lies in a system folder with all that follow (/etc/alternatives does not).
// The last name is not always the right one: clang++ ends at clang, which is another driver.
std::optional<std::string> NameInsideSandbox(const fs::path& path) {
  std::vector<fs::path> chain{path};
  std::error_code code;
  while (fs::is_symlink(chain.back(), code)) {
    if (chain.size() == kLinksMax) return std::nullopt;
    const fs::path target = fs::read_symlink(chain.back(), code);
    if (code) return std::nullopt;
    chain.push_back((chain.back().parent_path() / target).lexically_normal());
  }
  if (!fs::is_regular_file(chain.back(), code) || ::access(path.c_str(), X_OK) != 0)
    return std::nullopt;
  // A wrapper that writes a cache of its own cannot work in a read-only sandbox.
  const std::string last = chain.back().filename().string();
  if (last == "ccache" || last == "distcc" || last == "icecc") return std::nullopt;
  size_t first = chain.size();
  while (first > 0 && IsInSystemFolder(chain[first - 1])) --first;
  if (first == chain.size()) return std::nullopt;
  return chain[first].string();
}

std::optional<std::string> FindInPath(std::string_view name) {
  const char* variable = ::getenv("PATH");
  std::string_view folders = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  while (!folders.empty()) {
    const size_t end = folders.find(':');
    const std::string_view folder = folders.substr(0, end);
    folders.remove_prefix(end == std::string_view::npos ? folders.size() : end + 1);
    if (!folder.starts_with('/')) continue;
    if (auto found = NameInsideSandbox(fs::path(folder) / name)) return found;
  }
  return std::nullopt;
}

}  // namespace

Result<Compiler> FindCompiler(std::string_view name, std::string_view language) {
  const bool c = language == "c";
  std::vector<std::string> names;
  if (name.empty()) {
    names =
        c ? std::vector<std::string>{"gcc", "clang"} : std::vector<std::string>{"g++", "clang++"};
  } else {
    names = {std::string(name)};
  }
  for (const std::string& wanted : names) {
    const auto path = FindInPath(wanted);
    if (!path) continue;
    ASSAY_ASSIGN_OR_RETURN(const std::string version, ReadVersionText(*path));
    return Compiler{wanted, *path, version.substr(0, version.find('\n'))};
  }
  const bool clang = names.front().starts_with("clang");
  return EnvironmentError(fmt::format(
      "no {} compiler: {} is not in PATH under /usr; install one with: sudo apt-get install {}",
      c ? "C" : "C++", fmt::join(names, " or "),
      clang ? "clang"
      : c   ? "gcc"
            : "g++"));
}

std::vector<std::string> CompileCommand(const Compiler& compiler, const BuildOptions& options,
                                        std::string_view language, std::string_view input,
                                        std::string_view output) {
  const bool c = language == "c";
  std::vector<std::string> command{compiler.path, "-O3", "-march=native",
                                   c ? "-std=c11" : "-std=c++20"};
  command.insert(command.end(), {"-fPIC", "-shared", "-fvisibility=hidden", "-I/assay/include"});
  if (compiler.name.starts_with("clang")) {
    command.insert(command.end(),
                   {"-ferror-limit=3", "-fno-color-diagnostics", "-fno-caret-diagnostics"});
  } else {
    command.insert(command.end(),
                   {"-fmax-errors=3", "-fdiagnostics-color=never", "-fno-diagnostics-show-caret"});
  }
  if (!c) command.push_back("-ftemplate-backtrace-limit=2");
  // The candidate's flags win over the defaults; its libraries follow the file that needs them.
  for (const std::string& flag : options.flags) {
    if (!flag.starts_with("-l")) command.push_back(flag);
  }
  command.insert(command.end(), {"-o", std::string(output), std::string(input)});
  for (const std::string& flag : options.flags) {
    if (flag.starts_with("-l")) command.push_back(flag);
  }
  // C++ compilers add the mathematical library by themselves.
  if (c) command.push_back("-lm");
  // A symbol that nothing defines is an error of the build, with its name, rather than of the load.
  command.push_back("-Wl,-z,defs");
  return command;
}

}  // namespace assay
