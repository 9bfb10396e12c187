// A worklog: the facts of a match and the author's words about it, as they lie in one folder.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "worklog/match.h"
#include "worklog/words.h"

namespace assay {

inline constexpr const char* kWordsFile = "worklog.toml";
inline constexpr const char* kFactsFile = "facts.jsonl";
inline constexpr const char* kReferenceFile = "reference.py";  // a copy, to read
inline constexpr const char* kMarkdownFile = "worklog.md";
inline constexpr const char* kPageFile = "worklog.html";
inline constexpr const char* kPresentFile = "present.html";
inline constexpr size_t kWorklogSourceBytesMax = 1 << 20;

struct Worklog {
  Words words;
  Match match;
  std::map<std::string, std::string> sources;  // of versions, by their file; missing: not there
  std::string markdown, page;                  // as rendered before; empty: not there
  std::string reference;                       // the match's PyTorch program; empty: not there

  // Empty: the file is not there.
  std::string_view SourceOf(const VersionFact& version) const;
};

// The files of a worklog. Other processes that add to it wait while this object lives.
class WorklogFolder {
 public:
  // Makes a folder for a new worklog. Errors (kUsage): it has one.
  static Result<WorklogFolder> Make(const std::string& path);
  // Errors (kUsage): there is no worklog, or it was left in a state that the message tells.
  static Result<WorklogFolder> Open(const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<Fact>& facts() const { return facts_; }
  std::string PathOf(std::string_view file) const;

  // The worklog's id, by its words.
  Result<std::string> ReadId() const;
  // Errors (kUsage): facts or words cannot be read.
  Result<Worklog> Read() const;
  Result<void> AddFacts(std::span<const Fact> facts);
  // Adds text at the end of worklog.toml.
  Result<void> AddWords(std::string_view text);
  Result<void> Write(std::string_view file, std::string_view content);

 private:
  WorklogFolder(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  Result<void> ReadFacts();
  Result<Words> ReadWords() const;

  std::string path_;
  UniqueFd lock_;
  std::vector<Fact> facts_;
};

// The source as a worklog can hold it. Errors (kUsage): it is no text, or too long.
Result<void> CheckSource(std::string_view source, const std::string& path);

}  // namespace assay
