// Records the events of a match: in the archive first, then in the worklog's folder. And asks the
// archive whether it agrees with the folder.
#pragma once

#include <string>
#include <vector>

#include "archive/judged.h"
#include "archive/store.h"
#include "worklog/worklog.h"

namespace assay {

// Of verdicts on one reference in the archive, those after record `after`: their ids, oldest
// first; the newest kOutsideMax.
inline constexpr int64_t kOutsideMax = 200;
Result<std::vector<std::string>> VerdictsOn(Store& store, const std::string& problem,
                                            const std::string& reference_hash, int64_t after);

class MatchLog {
 public:
  // Both must outlive this object. `match`: the match so far; for a new one, as it is to begin.
  MatchLog(Store& store, WorklogFolder& folder, const Match& match);

  // Returns the place of the event.
  Result<FactPlace> Record(const MatchEvent& event);
  // Records a verdict as assay judge does, and that it is the version's.
  Result<void> RecordVerdict(const std::string& version, const JudgedSource& judged,
                             const Verdict& verdict);
  // The same for a judgement of a version against another.
  Result<void> RecordDuel(const std::string& version, const std::string& other,
                          const JudgedSource& judged, const Verdict& verdict);
  // Records that a verdict of the archive belongs to the match, beside its versions. `id`: the
  // verdict's. Errors (kUsage): there is none, it is on another reference, or
  // the worklog has it.
  Result<Verdict> RecordBesides(const std::string& id, const std::string& why);

 private:
  // Returns the hash of the verdict's record.
  Result<std::string> KeepVerdict(const JudgedSource& judged, const Verdict& verdict);
  Result<std::vector<std::string>> Outside();

  Store& store_;
  WorklogFolder& folder_;
  MatchBegun begun_;
  std::string last_;        // hash of the last note
  int64_t sequence_ = 0;    // up to which the archive was looked through for other verdicts
  std::string verdict_id_;  // of the verdict that was recorded last
};

// The archive's answer to the facts of a folder.
struct Witness {
  bool asked = false;                // false: there is no such archive here
  std::string archive;               // its file
  std::vector<int64_t> unknown;      // sequence numbers of facts that the archive does not have
  std::vector<Fact> missing;         // that the archive has of this match, and the folder has not
  std::vector<std::string> outside;  // ids of verdicts on the reference since the last note
};
Result<Witness> AskArchive(Store& store, const std::string& path, std::span<const Fact> facts,
                           const std::string& worklog);

}  // namespace assay
