// The build options in a candidate's `//!` lines. A flag reaches the compiler only if it is on the
// allow-list below: others could name files, load plugins, or hand options to other programs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>
#include <utility>

#include "toolchain/build.h"
#include "toolchain/device_program.h"
#include "toolchain/directives.h"
#include "toolchain/nvcc.h"
#include "toolchain/nvrtc.h"
#include "toolchain/tune_space.h"

namespace assay {
namespace {

constexpr size_t kFlagsMax = 64;
constexpr size_t kFlagBytesMax = 200;

constexpr std::string_view kDeviceFamilies =
    "-use_fast_math, -lineinfo, -restrict, -maxrregcount=16 to 255, -fmad=, -ftz=, -prec-div= and "
    "-prec-sqrt= true or false, --extra-device-vectorization, -std=c++11 to c++20, -DNAME[=VALUE], "
    "-UNAME";
constexpr std::string_view kNvccFamilies =
    "-O0 to -O3, -use_fast_math, -lineinfo, -restrict, -maxrregcount=16 to 255, -fmad=, -ftz=, "
    "-prec-div= and -prec-sqrt= true or false, --extra-device-vectorization, "
    "--expt-relaxed-constexpr, --extended-lambda, -std=c++17 or c++20, -DNAME[=VALUE], -UNAME, "
    "-lcublas, -lcublasLt";
constexpr std::string_view kFamilies =
    "-O0 to -O3, -Ofast, -Os, -g; -march=, -mtune=, -mcpu=, -mprefer-vector-width=, and -m names "
    "of instruction sets such as -mavx2; -ffast-math, -funroll-loops and other -f flags of the "
    "optimiser, -fopenmp, -fopenmp-simd; -std=; -DNAME[=VALUE], -UNAME; -W flags of the compiler; "
    "--param=NAME=NUMBER for a few names; -pthread, -lm, -lpthread";

// Names after -f, each also as -fno-NAME.
constexpr auto kOptimiserNames = std::to_array<std::string_view>({
    "aggressive-loop-optimizations",
    "associative-math",
    "builtin",
    "caller-saves",
    "cx-limited-range",
    "cx-fortran-rules",
    "cse-follow-jumps",
    "delete-null-pointer-checks",
    "exceptions",
    "excess-precision=fast",
    "excess-precision=standard",
    "expensive-optimizations",
    "fast-math",
    "finite-math-only",
    "finite-loops",
    "fp-contract=fast",
    "fp-contract=off",
    "fp-contract=on",
    "gcse",
    "if-conversion",
    "inline",
    "inline-functions",
    "inline-small-functions",
    "ipa-cp",
    "ipa-cp-clone",
    "ipa-pta",
    "ivopts",
    "loop-interchange",
    "loop-unroll-and-jam",
    "math-errno",
    "modulo-sched",
    "move-loop-invariants",
    "omit-frame-pointer",
    "openmp",
    "openmp-simd",
    "peel-loops",
    "plt",
    "predictive-commoning",
    "prefetch-loop-arrays",
    "reassociate",
    "reciprocal-math",
    "rename-registers",
    "rounding-math",
    "rtti",
    "schedule-insns",
    "schedule-insns2",
    "semantic-interposition",
    "signed-zeros",
    "slp-vectorize",
    "split-loops",
    "split-paths",
    "stack-protector",
    "strict-aliasing",
    "strict-overflow",
    "tracer",
    "trapping-math",
    "tree-loop-distribute-patterns",
    "tree-loop-distribution",
    "tree-loop-im",
    "tree-loop-vectorize",
    "tree-partial-pre",
    "tree-slp-vectorize",
    "tree-vectorize",
    "unroll-all-loops",
    "unroll-loops",
    "unsafe-math-optimizations",
    "unswitch-loops",
    "unwind-tables",
    "asynchronous-unwind-tables",
    "variable-expansion-in-unroller",
    "vect-cost-model=cheap",
    "vect-cost-model=dynamic",
    "vect-cost-model=unlimited",
    "vect-cost-model=very-cheap",
    "vectorize",
    "web",
    "wrapv",
});

// Instruction sets, each -mNAME or -mno-NAME; what follows one of these may only be letters, digits
// and dots.
constexpr auto kInstructionSets = std::to_array<std::string_view>(
    {"3dnow",  "abm",    "adx",    "aes", "amx-", "avx",   "bmi",        "clflushopt",
     "clwb",   "cx16",   "f16c",   "fma", "gfni", "lzcnt", "mmx",        "movbe",
     "pclmul", "popcnt", "prfchw", "sha", "sse",  "vaes",  "vpclmulqdq", "xop"});
constexpr auto kTargetSwitches = std::to_array<std::string_view>(
    {"avx256-split-unaligned-load", "avx256-split-unaligned-store", "recip", "vzeroupper"});

constexpr auto kParameters = std::to_array<std::string_view>({
    "inline-unit-growth",
    "l1-cache-line-size",
    "l1-cache-size",
    "l2-cache-size",
    "large-function-growth",
    "loop-block-tile-size",
    "max-completely-peel-times",
    "max-completely-peeled-insns",
    "max-inline-insns-auto",
    "max-inline-insns-single",
    "max-peel-times",
    "max-unroll-times",
    "max-unrolled-insns",
    "min-vect-loop-bound",
    "prefetch-latency",
    "simultaneous-prefetches",
    "unroll-jam-max-unroll",
    "unroll-jam-min-percent",
    "vect-epilogues-nomask",
    "vect-partial-vector-usage",
});

constexpr auto kPlainFlags = std::to_array<std::string_view>(
    {"-O", "-O0", "-O1", "-O2", "-O3", "-Ofast", "-Os", "-g", "-g0", "-g1", "-pthread", "-lm",
     "-lpthread", "-w", "-mprefer-vector-width=none", "-mprefer-vector-width=128",
     "-mprefer-vector-width=256", "-mprefer-vector-width=512"});

template <size_t N>
bool Contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool IsPlain(char c, std::string_view also) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         also.find(c) != std::string_view::npos;
}

bool AllPlain(std::string_view text, std::string_view also) {
  return std::all_of(text.begin(), text.end(), [also](char c) { return IsPlain(c, also); });
}

// Takes the prefix off `text` where it is there.
bool Consume(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool IsAllowedParameter(std::string_view setting) {
  const size_t equals = setting.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view value = setting.substr(equals + 1);
  return Contains(kParameters, setting.substr(0, equals)) && !value.empty() && value.size() <= 9 &&
         std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool IsAllowedTarget(std::string_view name) {
  for (std::string_view prefix : {"arch=", "tune=", "cpu="}) {
    std::string_view value = name;
    if (Consume(value, prefix)) return !value.empty() && AllPlain(value, "_.+-");
  }
  Consume(name, "no-");
  if (Contains(kTargetSwitches, name)) return true;
  for (std::string_view set : kInstructionSets) {
    std::string_view rest = name;
    if (Consume(rest, set) && AllPlain(rest, ".")) return true;
  }
  return false;
}

bool IsAllowedDefinition(std::string_view definition) {
  const size_t equals = definition.find('=');
  if (!IsIdentifier(definition.substr(0, equals))) return false;
  return equals == std::string_view::npos || AllPlain(definition.substr(equals + 1), "_.+-");
}

bool IsAllowedStandard(std::string_view standard, bool c) {
  const bool extensions = Consume(standard, "gnu");
  if (!extensions && !Consume(standard, "c")) return false;
  if (c) return standard == "11" || standard == "17" || standard == "18" || standard == "2x";
  for (std::string_view known : {"++17", "++1z", "++20", "++2a", "++23", "++2b"}) {
    if (standard == known) return true;
  }
  return false;
}

// What compiles a source. A .cu is in the device form where it has a launch line.
enum class Tool { kCCompiler, kCppCompiler, kNvcc, kNvrtc };

Tool ToolFor(std::string_view source, std::string_view language) {
  if (language == "cuda") return IsDeviceProgram(source) ? Tool::kNvrtc : Tool::kNvcc;
  return language == "c" ? Tool::kCCompiler : Tool::kCppCompiler;
}

std::string_view FamiliesOf(Tool tool) {
  return tool == Tool::kNvrtc ? kDeviceFamilies : tool == Tool::kNvcc ? kNvccFamilies : kFamilies;
}

bool IsAllowed(std::string_view flag, Tool tool) {
  if (tool == Tool::kNvcc || tool == Tool::kNvrtc) {
    std::string_view macro = flag;
    if (Consume(macro, "-D")) return IsAllowedDefinition(macro);
    if (Consume(macro, "-U")) return IsIdentifier(macro);
    return tool == Tool::kNvcc ? IsAllowedForNvcc(flag) : IsAllowedForDevice(flag);
  }
  if (Contains(kPlainFlags, flag)) return true;
  std::string_view rest = flag;
  if (Consume(rest, "--param=")) return IsAllowedParameter(rest);
  if (Consume(rest, "-std=")) return IsAllowedStandard(rest, tool == Tool::kCCompiler);
  if (Consume(rest, "-f")) {
    Consume(rest, "no-");
    return Contains(kOptimiserNames, rest);
  }
  if (Consume(rest, "-m")) return IsAllowedTarget(rest);
  if (Consume(rest, "-D")) return IsAllowedDefinition(rest);
  if (Consume(rest, "-U")) return IsIdentifier(rest);
  // -Wl, -Wa and -Wp hand options to other programs: they need a comma, which no warning has.
  if (Consume(rest, "-W")) return rest.size() > 1 && AllPlain(rest, "-=+");
  return false;
}

// Words that are surely a slip of `flags` or `compiler`, unlike the prose of a comment that happens
// to start with !.
bool LooksLikeADirective(std::string_view word) {
  std::string lower(word);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  if (!lower.empty() && lower.back() == ':') lower.pop_back();
  for (std::string_view slip : {"flag", "flags", "cflags", "cxxflags", "compiler", "compilers"}) {
    if (lower == slip) return true;
  }
  return false;
}

std::optional<std::string> AddFlags(const Directive& directive, Tool tool, BuildOptions& options) {
  std::string_view rest = directive.rest;
  while (!rest.empty()) {
    std::string flag(TakeWord(rest));
    if (flag == "--param") flag = "--param=" + std::string(TakeWord(rest));
    if (flag.size() > kFlagBytesMax || !IsAllowed(flag, tool)) {
      return fmt::format("line {}: flag '{}' is not allowed here; allowed are: {}", directive.line,
                         ShownText(flag), FamiliesOf(tool));
    }
    if (options.flags.size() == kFlagsMax)
      return fmt::format("line {}: more than {} flags", directive.line, kFlagsMax);
    options.flags.push_back(std::move(flag));
  }
  return std::nullopt;
}

std::optional<std::string> SetCompiler(const Directive& directive, Tool tool,
                                       BuildOptions& options) {
  if (tool == Tool::kNvrtc || tool == Tool::kNvcc)
    return fmt::format("line {}: CUDA is compiled by {}: leave the compiler out", directive.line,
                       tool == Tool::kNvcc ? "nvcc" : "NVRTC");
  const std::string_view gnu = tool == Tool::kCCompiler ? "gcc" : "g++";
  const std::string_view clang = tool == Tool::kCCompiler ? "clang" : "clang++";
  if (directive.rest != gnu && directive.rest != clang) {
    return fmt::format("line {}: compiler '{}' is not known for this language; use {} or {}",
                       directive.line, ShownText(directive.rest), gnu, clang);
  }
  if (!options.compiler.empty() && options.compiler != directive.rest)
    return fmt::format("line {}: a second compiler, after {}", directive.line, options.compiler);
  options.compiler = std::string(directive.rest);
  return std::nullopt;
}

bool Has(const std::vector<std::string>& flags, std::string_view flag) {
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

// Returns true if a line is a directive of OpenMP, or includes its header.
bool UsesOpenMp(std::string_view source) {
  while (!source.empty()) {
    const size_t end = std::min(source.find('\n'), source.size());
    std::istringstream line(std::string(source.substr(0, end)));
    source.remove_prefix(std::min(end + 1, source.size()));
    std::string first, second, third;
    line >> first >> second >> third;
    if (first == "#") first += std::exchange(second, std::exchange(third, ""));
    if (first == "#pragma" && second == "omp") return true;
    if (first == "#include" && second == "<omp.h>") return true;
  }
  return false;
}

}  // namespace

std::string_view AllowedFlags(bool device_form) {
  return FamiliesOf(device_form ? Tool::kNvrtc : Tool::kCppCompiler);
}

std::expected<BuildOptions, std::string> ParseBuildOptions(std::string_view source,
                                                           std::string_view language) {
  if (source.find_first_not_of(" \t\r\n\f\v") == std::string_view::npos)
    return std::unexpected("the file is empty");
  if (const size_t zero = source.find('\0'); zero != std::string_view::npos) {
    const auto line =
        1 + std::count(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(zero), '\n');
    return std::unexpected(
        fmt::format("line {}: the file is not source text: it holds a zero byte", line));
  }
  BuildOptions options;
  const Tool tool = ToolFor(source, language);
  for (const Directive& directive : FindDirectives(source, language)) {
    std::optional<std::string> problem;
    if (directive.word == "flags") {
      problem = AddFlags(directive, tool, options);
    } else if (directive.word == "compiler") {
      problem = SetCompiler(directive, tool, options);
    } else if (LooksLikeADirective(directive.word)) {
      problem = fmt::format(
          "line {}: '//! {}' means nothing; write '//! flags ...' or '//! compiler NAME'",
          directive.line, ShownText(directive.word));
    }
    if (problem) return std::unexpected(*std::move(problem));
  }
  const auto space = ParseTuneSpace(source, language);
  if (!space) return std::unexpected(space.error());
  // In the device form the launches' plan does the same.
  if (tool != Tool::kNvrtc)
    for (const TuneLine& tune : space->tunes)
      options.flags.push_back(fmt::format("-D{}={}", tune.name, tune.values.front()));
  // Without the flag a compiler leaves the directives out without a word.
  const bool compiles = tool == Tool::kCCompiler || tool == Tool::kCppCompiler;
  if (compiles && UsesOpenMp(source) && !Has(options.flags, "-fopenmp") &&
      !Has(options.flags, "-fopenmp-simd"))
    options.flags.emplace_back("-fopenmp");
  return options;
}

}  // namespace assay
