// Mentors' marks on worklogs, with who gave them and when. Marks replace those before them, which
// are kept. Who marks says which marks were seen, so that two mentors do not overwrite each other.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "serve/member_work.h"
#include "serve/worklogs.h"
#include "worklog/rubric.h"

namespace assay {

struct KeptMarks {
  Marks marks;
  int64_t revision = 0;  // from 1; 0: none yet
  std::string mentor;    // the account's name
  int64_t marked_s = 0;
  int64_t upload = 0;  // that was marked
};

// The state of a worklog that a mentor had in view.
struct SeenWorklogState {
  int64_t revision = 0;  // of the marks; 0: none yet
  int64_t upload = 1;
};

// A worklog with its grade, as a page or the sheet shows it.
struct GradedWorklog {
  WorklogEntry entry;
  UploadedWorklog uploaded;
  std::vector<Finding> findings;
  KeptMarks kept;
  Grade grade;
  // Nothing is missing, and nothing is suspicious: it can be certified.
  bool complete = false;
};

class Grades {
 public:
  // Both must outlive this object.
  Grades(Database& database, Worklogs& worklogs) : database_(database), worklogs_(worklogs) {}

  Result<KeptMarks> Last(int64_t worklog);
  // Oldest first.
  Result<std::vector<KeptMarks>> All(int64_t worklog);
  // Marks that were lifted from suspicion hold for the upload that they were given for: a later one
  // may have something else in it.
  Result<GradedWorklog> Graded(const WorklogEntry& entry, const Class& of);
  // `marks`: points, note and lifted count; the rest is filled in. Refusals: 409 other marks or
  // another upload came between, 403 no mentor of the class.
  Granted<GradedWorklog> Give(const WorklogEntry& entry, const Class& of, Marks marks,
                              SeenWorklogState seen, const Account& mentor, Instant now);
  // Keeps marks as they were given elsewhere.
  Result<void> Restore(int64_t worklog, int64_t mentor, const KeptMarks& kept);

 private:
  Result<GradedWorklog> GradedBy(const WorklogEntry& entry, const Class& of, KeptMarks kept);

  Database& database_;
  Worklogs& worklogs_;
};

Result<Rubric> RubricOf(const Class& of);

// CSV: a line a worklog, and one for each student without a worklog. Each has the member's jobs and
// finals, too. `work`: by the account's id.
std::string ClassSheet(std::span<const GradedWorklog> graded, std::span<const Account> members,
                       const Rubric& rubric, const std::map<int64_t, MemberWork>& work);

}  // namespace assay
