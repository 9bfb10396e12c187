// The example class (examples/class): verdicts that were measured earlier, under names that are
// examples, too. For `assay serve --demo` and for tests of pages.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "archive/exported.h"
#include "base/result.h"
#include "model/machine_profile.h"
#include "model/verdict.h"
#include "serve/tar.h"
#include "serve/types.h"

namespace assay {

struct ExampleCandidate {
  std::string player;
  Role role = Role::kStudent;
  std::string source;
  Verdict verdict;
};

struct Examples {
  std::string class_name, runner;
  std::vector<ExampleCandidate> candidates;  // by the time of their verdicts
  MachineProfile machine;                    // that judged them
  std::string worklog;                       // a folder with an example worklog
  std::string worklog_player;                // who sends it
  std::vector<ExportedRecord> searches;      // their records, with the verdicts that they made
  std::map<std::string, std::string> found;  // verdicts of searches -> players who submitted them

  // Names and roles of all players.
  std::map<std::string, Role> Players() const;
};

// Places of what the examples are read from, in a checkout or in an installation.
struct ExampleFolders {
  std::string examples;  // players.json, verdicts.jsonl, searches.jsonl, machine.json, worklog/
  std::string kernels;
};
// Errors (kUsage): a file is missing or is not as it was measured.
Result<Examples> ReadExamples(const ExampleFolders& folders);

// Fills the folder of a server that has not begun: an archive whose records have the times at which
// they were made, and a class of the players with a worklog. Takes well under a second. Errors
// (kUsage): the folder has an archive.
Result<void> FillWithExamples(const Examples& examples, const TarLibrary& tars,
                              const std::string& folder);

}  // namespace assay
