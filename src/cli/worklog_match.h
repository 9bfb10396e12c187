// A worklog with the archive that its facts are in, opened for a command.
#pragma once

#include <memory>
#include <string>

#include "archive/open_store.h"
#include "cli/worklog_command.h"
#include "worklog/check.h"
#include "worklog/match_log.h"
#include "worklog/rubric.h"

namespace assay {

struct OpenedMatch {
  std::unique_ptr<Store> store;  // null: there is no such archive here
  WorklogFolder folder;
  Worklog worklog;
  Witness witness;
  size_t fetched = 0;  // facts that the folder lacked and the archive had
};

// For commands that look: works without the archive. Facts that the folder lacks are fetched.
Result<OpenedMatch> OpenToLook(const WorklogPlace& place);
// For commands that record: the archive must have the facts of the folder.
Result<OpenedMatch> OpenToRecord(const WorklogPlace& place);

// All that CheckWorklog finds, and facts that were fetched.
std::vector<Finding> CheckOpened(const OpenedMatch& opened);

inline constexpr const char* kMarksFile = "marks.toml";
// A mentor's marks in the folder. Errors (kUsage): they are another worklog's, or cannot be read.
Result<Marks> ReadMarks(const OpenedMatch& opened);

std::string ArchiveOf(const WorklogPlace& place);
// " --in FOLDER --archive FILE", as far as they were given, for hints.
std::string PlaceWords(const WorklogPlace& place);

}  // namespace assay
