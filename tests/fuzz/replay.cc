// The main of a fuzz target where no libFuzzer is linked: any build can run a corpus, and explore a
// little around it.
//
//   TARGET [--mutate SECONDS] [--seed N] [--dictionary FILE] [--artifacts FOLDER] PATH...
//
// Theory of operation. Every input runs in a child process that keeps the bytes in hand in memory
// shared with the parent. When the child ends badly (a signal, a failed CHECK, a sanitizer's
// report, over ten seconds on one input), the parent still holds the input that did it, writes it
// to a file and says so; no sanitizer's cooperation is needed. Exit codes: 0 nothing found, 1 an
// input was found, 2 usage.
#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace assay {
namespace {

constexpr size_t kInputBytesMax = 1 << 16;
constexpr unsigned kInputSecondsMax = 10;
constexpr int kEditsMax = 8;

// What the parent sees of its child.
struct Shared {
  uint64_t runs;
  uint32_t size;
  uint8_t input[kInputBytesMax];
};

struct Options {
  double mutate_s = 0;
  uint64_t seed = 0;
  std::string dictionary;
  std::string artifacts = ".";
  std::vector<std::string> paths;
};

[[noreturn]] void Usage(const char* why) {
  std::fprintf(stderr,
               "%s\nusage: TARGET [--mutate SECONDS] [--seed N] [--dictionary FILE] [--artifacts "
               "FOLDER] PATH...\n",
               why);
  std::exit(2);
}

Options ParseArguments(int count, char** arguments) {
  Options options;
  options.seed = uint64_t{std::random_device{}()};
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    const auto value = [&]() -> std::string {
      return ++i < count ? arguments[i] : (Usage("an option lacks its value"), "");
    };
    if (name == "--mutate")
      options.mutate_s = std::strtod(value().c_str(), nullptr);
    else if (name == "--seed")
      options.seed = std::strtoull(value().c_str(), nullptr, 10);
    else if (name == "--dictionary")
      options.dictionary = value();
    else if (name == "--artifacts")
      options.artifacts = value();
    else if (name.starts_with("--"))
      Usage("an unknown option");
    else
      options.paths.push_back(name);
  }
  if (options.paths.empty()) Usage("no corpus was named");
  return options;
}

std::vector<std::string> ReadCorpus(const std::vector<std::string>& paths) {
  std::vector<std::filesystem::path> files;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      files.emplace_back(path);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(path))
      if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> corpus;
  for (const auto& file : files) {
    auto content = ReadFile(file, kInputBytesMax);
    if (!content) Usage(content.error().message.c_str());
    corpus.push_back(std::move(*content));
  }
  return corpus;
}

// Words of a libFuzzer dictionary: lines of NAME="text", where \xNN, \\ and \" are escapes.
std::vector<std::string> ReadDictionary(const std::string& path) {
  std::vector<std::string> words;
  if (path.empty()) return words;
  const auto content = ReadFile(path, kInputBytesMax);
  if (!content) Usage(content.error().message.c_str());
  for (size_t begin = 0; begin < content->size();) {
    const size_t end = std::min(content->find('\n', begin), content->size());
    const std::string line = content->substr(begin, end - begin);
    begin = end + 1;
    const size_t open = line.find('"'), close = line.rfind('"');
    if (line.starts_with('#') || open == std::string::npos || close <= open) continue;
    std::string word;
    for (size_t i = open + 1; i < close; ++i) {
      if (line[i] == '\\' && line[i + 1] == 'x' && i + 3 < close) {
        word += static_cast<char>(std::stoi(line.substr(i + 2, 2), nullptr, 16));
        i += 3;
      } else {
        if (line[i] == '\\') ++i;
        word += line[i];
      }
    }
    words.push_back(word);
  }
  return words;
}

// Small changes to an input, drawn from a seed.
class Mutator {
 public:
  Mutator(const std::vector<std::string>& corpus, const std::vector<std::string>& words,
          uint64_t seed)
      : corpus_(corpus), words_(words), random_(seed) {}

  std::string Next() {
    std::string input = Pick(corpus_);
    const uint64_t edits = 1 + Below(kEditsMax);
    for (uint64_t i = 0; i < edits; ++i) Edit(input);
    if (input.size() > kInputBytesMax) input.resize(kInputBytesMax);
    return input;
  }

 private:
  uint64_t Below(uint64_t limit) { return limit == 0 ? 0 : random_() % limit; }
  const std::string& Pick(const std::vector<std::string>& from) {
    static const std::string nothing;
    return from.empty() ? nothing : from[Below(from.size())];
  }
  std::string Piece(const std::string& of) {
    const size_t begin = Below(of.size() + 1);
    return of.substr(begin, Below(std::min<size_t>(of.size() - begin, 64) + 1));
  }

  void Edit(std::string& input) {
    const size_t at = Below(input.size() + 1);
    const size_t inside = Below(input.size());
    switch (Below(input.empty() ? 4 : 10)) {
      case 0:
        input.insert(at, 1, static_cast<char>(random_()));
        break;
      case 1:
        input.insert(at, Pick(words_));
        break;
      case 2:
        input.insert(at, Piece(Pick(corpus_)));
        break;
      case 3:  // nesting and long runs
        input.insert(at, std::string(Below(2000), input.empty() ? '[' : input[inside]));
        break;
      case 4:
        input[inside] = static_cast<char>(input[inside] ^ (1 << Below(8)));
        break;
      case 5: {
        static constexpr unsigned char kEdges[] = {0x00, 0x01, 0x7f, 0x80, 0xff, '0', '9', '-'};
        input[inside] = static_cast<char>(kEdges[Below(sizeof kEdges)]);
        break;
      }
      case 6:
        input.erase(inside, 1 + Below(16));
        break;
      case 7:
        input.resize(inside);
        break;
      case 8:
        input.insert(at, Piece(input));
        break;
      default:
        input.replace(inside, Below(16), Pick(words_));
        break;
    }
  }

  const std::vector<std::string>& corpus_;
  const std::vector<std::string>& words_;
  std::mt19937_64 random_;
};

void Run(const std::string& input, Shared* shared) {
  shared->size = static_cast<uint32_t>(input.size());
  std::memcpy(shared->input, input.data(), input.size());
  ++shared->runs;
  ::alarm(kInputSecondsMax);
  LLVMFuzzerTestOneInput(shared->input, shared->size);
}

// In the child: the corpus as it is, the empty input, then mutations until the time is up.
void Explore(const Options& options, const std::vector<std::string>& corpus, Shared* shared) {
  Run("", shared);
  for (const std::string& input : corpus) Run(input, shared);
  const std::vector<std::string> words = ReadDictionary(options.dictionary);
  Mutator mutator(corpus, words, options.seed);
  const Deadline end = Deadline::AfterSeconds(options.mutate_s);
  while (!end.Expired()) Run(mutator.Next(), shared);
}

int Main(int count, char** arguments) {
  const Options options = ParseArguments(count, arguments);
  const std::vector<std::string> corpus = ReadCorpus(options.paths);
  void* memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) Usage(strerror(errno));
  auto* shared = static_cast<Shared*>(memory);
  std::fprintf(stderr, "%zu files, %.1f s of mutations, seed %llu\n", corpus.size(),
               options.mutate_s, static_cast<unsigned long long>(options.seed));
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) Usage(strerror(errno));
  if (child == 0) {
    Explore(options, corpus, shared);
    std::fflush(nullptr);
    std::_Exit(0);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const auto runs = static_cast<unsigned long long>(shared->runs);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    std::fprintf(stderr, "%llu inputs, nothing found\n", runs);
    return 0;
  }
  const std::string path = options.artifacts + "/found-" + std::to_string(options.seed);
  const std::string input(reinterpret_cast<const char*>(shared->input), shared->size);
  const bool written = WriteFileAtomically(path, input).has_value();
  std::fprintf(stderr, "input %llu ended the process with %s %d; its %u bytes are in %s\n", runs,
               WIFSIGNALED(status) ? "signal" : "exit code",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), shared->size,
               written ? path.c_str() : "no file: it cannot be written");
  return 1;
}

}  // namespace
}  // namespace assay

int main(int count, char** arguments) { return assay::Main(count, arguments); }
