// Turns a candidate's source into the command that the builder's sandbox runs, and a compiler's
// output into one clear message. Compiles nothing itself: `builders` runs the commands.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/kinds.h"

namespace assay {

// A candidate, read once. All later stages use this copy.
struct CandidateSource {
  std::string path;
  std::string content;  // of a folder: packed (packed_folder.h)
  std::string hash;     // SHA-256 of the content
  CandidateForm form = CandidateForm::kNative;
  std::string language;   // "cpp", "c", "python", "cuda"
  std::string note = {};  // on how it was read, for people; may be empty

  // Returns true for CUDA in either form: it runs on a GPU alone.
  bool IsCuda() const { return language == "cuda"; }
};

inline constexpr size_t kCandidateBytesMax = 1 << 20;

// Reads a candidate, a folder packed (packed_folder.h). Errors (kUsage): missing, over 1 MiB, a
// suffix other than .cpp .cc .cxx .c .cu .py .txt .md, an answer without code, a folder that cannot
// be packed, or a .cu file with neither a launch line nor an ASSAY_KERNEL.
Result<CandidateSource> ReadCandidate(const std::string& path);
// The same for a text in memory; `path` is its name. Where the text is a model's answer, its code
// is the candidate (answer/code_of_answer.h).
Result<CandidateSource> CandidateFromAnswer(const std::string& path, std::string text);
// The same for a text that is the candidate's source as it stands.
Result<CandidateSource> CandidateFromText(const std::string& path, std::string content);
// Returns true if the name says that a file is an answer: .txt, .md.
bool IsNamedAsAnswer(const std::string& path);

// The requests in the `//!` lines of a native candidate.
struct BuildOptions {
  std::string compiler;  // "g++", "clang++", "gcc", "clang"; empty: the first installed one
  std::vector<std::string> flags;  // in order, all from the allow-list
};
// Parses `//! compiler NAME` and `//! flags ...` lines (C sources may also write `/*! flags ...
// */`). The error names the line, the flag and the allowed ones; `builders` makes it a build_failed
// verdict.
std::expected<BuildOptions, std::string> ParseBuildOptions(std::string_view source,
                                                           std::string_view language);

// A compiler of this machine.
struct Compiler {
  std::string name;     // "g++"
  std::string path;     // resolved
  std::string version;  // first line of --version
};
// Finds the named compiler; without a name, the language's first installed one (g++, clang++; gcc,
// clang). Errors (kEnvironment) say how to install one.
Result<Compiler> FindCompiler(std::string_view name, std::string_view language);

// Returns the argv that compiles `input` to `output` inside the sandbox; kernel.h is under
// /assay/include.
std::vector<std::string> CompileCommand(const Compiler& compiler, const BuildOptions& options,
                                        std::string_view language, std::string_view input,
                                        std::string_view output);

// Returns the first error of a compiler's output as "line 12: no matching function ...", without
// the lines on templates. `entry`: the path of the candidate's file that lines are counted in;
// empty: any in the candidate's folder.
std::string FirstDiagnostic(std::string_view compiler_output, std::string_view entry = {});

// Returns true if the output's first error is that a header is not there.
bool LacksHeader(std::string_view compiler_output);

// Returns N of a message of this folder that begins "line N: ", the line of the candidate's source
// that it is about; 0: it begins otherwise.
int LineOfMessage(std::string_view message);

// An error that a line of the candidate causes.
struct CompilerError {
  int line = 0;
  std::string message;  // "expected ',' or ';' before 'for'"
};
// Returns the first `most` errors with a line of the candidate's, each once.
std::vector<CompilerError> CompilerErrors(std::string_view compiler_output, size_t most);

// Store of artifacts by a key that covers source, command, compiler, header and processor. Entries
// are written whole, then renamed; a damaged entry (its hash does not match) counts as absent.
// Above its size limit the oldest entries go.
class ArtifactCache {
 public:
  explicit ArtifactCache(std::string folder, uint64_t size_bytes_max = uint64_t{1} << 30);
  static std::string Key(
      const std::vector<std::string>& parts);  // SHA-256 over length-prefixed parts
  std::optional<std::string> Get(const std::string& key) const;
  // Errors: the cache cannot be written (disk full, read-only). The judgement goes on without it.
  Result<void> Put(const std::string& key, std::string_view artifact);

 private:
  std::string folder_;
  uint64_t size_bytes_max_;
};

// Names the processor and its features, on which -march=native depends, from /proc/cpuinfo.
std::string ProcessorIdentity();

}  // namespace assay
