// From a candidate's source to what the builder's sandbox must run, and back from its output to one
// clear message. Pure but for the cache: `builders` runs the commands.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay {

// kDevice: CUDA device code, whose `//! launch` lines Assay itself carries out.
enum class CandidateForm { kNative, kPython, kDevice };

// A candidate file, read once and frozen: everything later uses this copy.
struct CandidateSource {
  std::string path;
  std::string content;
  std::string hash;  // SHA-256 of the content
  CandidateForm form = CandidateForm::kNative;
  std::string language;  // "cpp", "c", "python", "cuda"

  // In either of its forms: it runs on a GPU alone.
  bool IsCuda() const { return language == "cuda"; }
};

inline constexpr size_t kCandidateBytesMax = 1 << 20;

// Reads a candidate. Errors (kUsage): missing, a folder, over 1 MiB, a suffix that is none of .cpp
// .cc .cxx .c .cu .py, or a .cu file with neither a launch line nor an ASSAY_KERNEL.
Result<CandidateSource> ReadCandidate(const std::string& path);
// The same of text that is at hand; `path` is what it is called.
Result<CandidateSource> CandidateFromText(const std::string& path, std::string content);

// What the `//!` lines of a native candidate ask for.
struct BuildOptions {
  std::string compiler;  // "g++", "clang++", "gcc", "clang"; empty: first that is installed
  std::vector<std::string> flags;  // in order, all from the allow-list
};
// Parses `//! compiler NAME` and `//! flags ...` lines (C sources may also write `/*! flags ...
// */`). The error text names the line, the flag and what is allowed; `builders` makes it a
// build_failed verdict.
std::expected<BuildOptions, std::string> ParseBuildOptions(std::string_view source,
                                                           std::string_view language);

// A compiler as found on this machine.
struct Compiler {
  std::string name;     // "g++"
  std::string path;     // resolved
  std::string version;  // first line of --version
};
// The named compiler, or the language's first one installed (g++, clang++; gcc, clang). Errors
// (kEnvironment) say how to install one.
Result<Compiler> FindCompiler(std::string_view name, std::string_view language);

// argv that compiles /candidate/<file> to `output` inside the sandbox; kernel.h is under
// /assay/include.
std::vector<std::string> CompileCommand(const Compiler& compiler, const BuildOptions& options,
                                        std::string_view language, std::string_view input,
                                        std::string_view output);

// The first error of a compiler's output as "line 12: no matching function ...", without the wall
// of templates.
std::string FirstDiagnostic(std::string_view compiler_output);

// Content-addressed store of artifacts: the key covers source, command, compiler, header,
// processor. Entries are written whole, then renamed; a damaged entry (its hash does not match)
// counts as absent. Bounded by size: oldest out.
class ArtifactCache {
 public:
  explicit ArtifactCache(std::string folder, uint64_t size_bytes_max = uint64_t{1} << 30);
  static std::string Key(
      const std::vector<std::string>& parts);  // SHA-256 over length-prefixed parts
  std::optional<std::string> Get(const std::string& key) const;
  // A cache that cannot be written (disk full, read-only) is not an error of the judgement: returns
  // the message.
  Result<void> Put(const std::string& key, std::string_view artifact);

 private:
  std::string folder_;
  uint64_t size_bytes_max_;
};

// Names the processor and its features (what -march=native depends on), from /proc/cpuinfo.
std::string ProcessorIdentity();

}  // namespace assay
