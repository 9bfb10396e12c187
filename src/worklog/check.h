// Compares the words of a worklog with its facts, and tells what is missing, changed or suspicious,
// section by section. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "worklog/match_log.h"
#include "worklog/worklog.h"

namespace assay {

enum class FindingKind {
  kMissing,     // something is still to do
  kChanged,     // words or files say otherwise than the facts
  kSuspicious,  // a mentor should look
  kNote,        // worth knowing
  kLifted,      // changed or suspicious, and a mentor said why it does not count
};

// A finding that others single out. Its text is for people alone.
enum class FindingCode { kOther, kNoArchive };

struct Finding {
  FindingKind kind = FindingKind::kNote;
  std::optional<Section> section;  // nullopt: the worklog as a whole
  std::string text;                // one sentence
  std::string next;                // the command that mends it; may be empty
  FindingCode code = FindingCode::kOther;
};

// In the order of the sections; the whole comes last. `rendered`: the worklog as Markdown, now;
// empty: worklog.md is not compared.
std::vector<Finding> CheckWorklog(const Worklog& worklog, const Witness& witness,
                                  const std::string& rendered);

bool Any(const std::vector<Finding>& findings, FindingKind kind);

}  // namespace assay
