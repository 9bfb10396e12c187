#include "rules/stream_use.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace assay {
namespace {

// Parts of identifiers in lower case: makers of streams and graphs, and layers, solvers and tools
// that have streams of their own.
constexpr std::array<std::string_view, 18> kParts{"streamcreate",
                                                  "streamfrompool",
                                                  "externalstream",
                                                  "streamfromexternal",
                                                  "streamguard",
                                                  "streamcontext",
                                                  "setstream",
                                                  "set_stream",
                                                  "setcurrentcudastream",
                                                  "perthread",
                                                  "per_thread",
                                                  "cugraph",
                                                  "cudagraph",
                                                  "graphed",
                                                  "lstm",
                                                  "rnn",
                                                  "cusolver",
                                                  "dataparallel"};
// Whole identifiers. `Stream` makes one in Python.
constexpr std::array<std::string_view, 13> kWords{
    "Stream", "GRU",      "GRUCell",  "gru",   "linalg", "magma",    "inverse",
    "svd",    "pinverse", "cholesky", "lstsq", "eigh",   "importlib"};
// `stream(x)` enters one in Python, while `stream()` reads a handle in C++.
constexpr std::array<std::string_view, 2> kCalls{"stream", "graph"};
// Text that is no identifier: a compiler's option, and modes of torch.compile that replay graphs.
constexpr std::array<std::string_view, 6> kTexts{"default-stream",    "torch.distributed",
                                                 "\"reduce-overhead", "'reduce-overhead",
                                                 "\"max-autotune",    "'max-autotune"};
// Modules that make no streams unless one of the words above asks them to.
constexpr std::array<std::string_view, 28> kModules{
    "__future__", "abc",      "assay_host", "collections", "contextlib", "copy",      "dataclasses",
    "einops",     "enum",     "functools",  "hashlib",     "inspect",    "itertools", "logging",
    "math",       "numpy",    "operator",   "os",          "pathlib",    "random",    "re",
    "sys",        "tempfile", "time",       "torch",       "triton",     "typing",    "warnings"};

bool IsWordCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

std::string_view WithoutBlanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

// Takes the identifier that a text begins with.
std::string_view TakeWord(std::string_view text) {
  const auto end = std::find_if_not(text.begin(), text.end(), IsWordCharacter);
  return text.substr(0, static_cast<size_t>(end - text.begin()));
}

// `after`: the text that follows.
bool SpeaksOfStreams(std::string_view word, std::string_view after) {
  if (std::find(kWords.begin(), kWords.end(), word) != kWords.end()) return true;
  if (std::find(kCalls.begin(), kCalls.end(), word) != kCalls.end() && after.starts_with('('))
    return !WithoutBlanks(after.substr(1)).starts_with(')');
  std::string lower(word);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::any_of(kParts.begin(), kParts.end(),
                     [&](std::string_view part) { return lower.contains(part); });
}

bool IsKnown(std::string_view module) {
  return std::find(kModules.begin(), kModules.end(), module) != kModules.end();
}

// Returns a module of an import statement that is not known; empty: none. A line of prose may begin
// as one.
std::string_view UnknownModule(std::string_view line) {
  line = WithoutBlanks(line);
  const std::string_view verb = TakeWord(line);
  const std::string_view modules = WithoutBlanks(line.substr(verb.size()));
  if (verb == "from") {
    const std::string_view path = modules.substr(0, modules.find(' '));
    const bool imports = WithoutBlanks(modules.substr(path.size())).starts_with("import ");
    const std::string_view root = path.starts_with('.') ? path : TakeWord(path);
    return imports && !IsKnown(root) ? root : std::string_view();
  }
  if (verb != "import") return {};
  std::string_view unknown;
  for (std::string_view rest = modules; !rest.empty();) {
    const std::string_view item = WithoutBlanks(rest.substr(0, rest.find(',')));
    const std::string_view path = item.substr(0, item.find_first_of(" \t\r;#"));
    const std::string_view after = WithoutBlanks(item.substr(path.size()));
    if (!after.empty() && !after.starts_with("as ") && !after.starts_with('#') &&
        !after.starts_with(';') && !after.starts_with('\r'))
      return {};
    if (const std::string_view root = TakeWord(path); !root.empty() && !IsKnown(root))
      unknown = root;
    rest = rest.contains(',') ? rest.substr(rest.find(',') + 1) : std::string_view();
  }
  return unknown;
}

}  // namespace

std::string StreamWord(std::string_view source) {
  for (const std::string_view text : kTexts)
    if (source.contains(text)) return std::string(text);
  for (size_t at = 0; at < source.size();) {
    const std::string_view word = TakeWord(source.substr(at));
    if (SpeaksOfStreams(word, source.substr(at + word.size()))) return std::string(word);
    at += std::max<size_t>(1, word.size());
  }
  for (size_t at = 0; at < source.size();) {
    const std::string_view line = source.substr(at, source.find('\n', at) - at);
    if (const std::string_view module = UnknownModule(line); !module.empty())
      return std::string(module);
    at += line.size() + 1;
  }
  return {};
}

}  // namespace assay
