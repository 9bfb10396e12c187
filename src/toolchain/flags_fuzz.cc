// The `//!` lines of a candidate. The first byte chooses the language. Whatever is accepted must be
// what the allow-list is for: no flag that names a file, hands options to another program or
// carries a byte that a command line would split.
#include <algorithm>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "toolchain/build.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay;
  using std::literals::operator""sv;
  if (size == 0) return 0;
  const bool cuda = data[0] == 'u';
  const std::string_view language = cuda ? "cuda" : data[0] % 2 == 0 ? "cpp" : "c";
  const std::string_view source(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto options = ParseBuildOptions(source, language);
  if (!options) {
    ASSAY_CHECK(!options.error().empty() && options.error().size() < 1000);
    for (const char c : options.error()) ASSAY_CHECK(c >= 0x20 && c < 0x7f);
    return 0;
  }
  ASSAY_CHECK(options->flags.size() <= 64);
  std::string again = "//! flags";
  for (const std::string& flag : options->flags) {
    ASSAY_CHECK(flag.size() >= 2 && flag.size() <= 200 && flag[0] == '-');
    ASSAY_CHECK(flag.find_first_of(" \t\r\n\f\v\0/,@'\"\\`$;:<>|&*?"sv) == std::string::npos);
    for (const char* other : {"-I", "-L", "-B", "-o", "-x", "-fplugin", "-include", "-specs",
                              "-wrapper", "-save-temps", "-dump", "-M", "-E", "-T", "-X"})
      ASSAY_CHECK(!flag.starts_with(other));
    // CUDA's compilers have a few such names; a linker would read others as its entry.
    ASSAY_CHECK(!flag.starts_with("-e") ||
                (cuda && (flag.starts_with("-ext") || flag.starts_with("-expt-"))));
    again += " " + flag;
  }
  if (cuda) {
    ASSAY_CHECK(options->compiler.empty());
    return 0;
  }
  if (!options->compiler.empty()) {
    const std::string& name = options->compiler;
    ASSAY_CHECK(language == "c" ? name == "gcc" || name == "clang"
                                : name == "g++" || name == "clang++");
    again += "\n//! compiler " + name;
  }
  const auto reread = ParseBuildOptions(again, language);
  ASSAY_CHECK(reread && reread->flags == options->flags && reread->compiler == options->compiler);
  const Compiler compiler{"g++", "/usr/bin/g++", "g++"};
  const auto command = CompileCommand(compiler, *options, language, "/in.cpp", "/out.so");
  for (const std::string& flag : options->flags)
    ASSAY_CHECK(std::find(command.begin(), command.end(), flag) != command.end());
  return 0;
}
