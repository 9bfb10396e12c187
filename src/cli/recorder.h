// Records in the archive what a command judges. A failure to record is told once, in one line, and
// changes nothing else.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "archive/judged.h"
#include "archive/open_store.h"

namespace assay {

// A candidate with its verdict or, if that is null, its error.
struct JudgedCandidate {
  JudgedSource source;
  const Verdict* verdict = nullptr;
  const Error* error = nullptr;
};

// $XDG_DATA_HOME/assay/archive.sqlite, or below ~/.local/share.
std::string DefaultArchive();

class Recorder {
 public:
  // `path`: the archive's file or URL; empty: DefaultArchive(). It is opened, and made, at the
  // first record. With `off` nothing is recorded.
  Recorder(const std::string& path, bool off);

  void Judged(const JudgedSource& judged, const Verdict& verdict);
  // The same of many, as one append. A verdict that was recorded before is left out: a run that
  // died before it kept its rows records them again.
  void Judged(std::span<const JudgedCandidate> judged);
  void Unjudged(const JudgedSource& judged, const Error& error);
  void Add(NewRecord record);
  // The beginning of a run: `text` names its problems.
  void RunBegan(const std::string& folder, const std::string& text, const std::string& terms);

 private:
  // Adds the files that a verdict names, as long as they are what it was given on.
  void AddFiles(const Verdict& verdict, std::vector<NewRecord>* records);
  Result<void> Append(const std::vector<NewRecord>& records);
  void Keep(const std::vector<NewRecord>& records);

  const std::string path_;
  const bool off_;
  bool told_ = false;             // that recording fails
  std::set<std::string> files_;   // hashes of those that were recorded
  std::unique_ptr<Store> store_;  // null: not opened yet, or given up after an error
};

}  // namespace assay
