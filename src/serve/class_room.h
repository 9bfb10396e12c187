// All that requests about classes use, for as long as one takes; and the rules of classes for the
// rest of a server.
#pragma once

#include <string>
#include <vector>

#include "serve/class_transfer.h"
#include "serve/classes.h"
#include "serve/finals.h"
#include "serve/grades.h"
#include "serve/hall.h"
#include "serve/worklogs.h"

namespace assay {

// Both must outlive it; the hall's mutex is held.
class ClassRoom {
 public:
  ClassRoom(Hall& hall, const TarLibrary& tar_library)
      : tars(tar_library),
        accounts(hall.accounts()),
        jobs(hall.jobs()),
        classes(hall.database(), accounts),
        worklogs(hall.database(), hall.archive(), tars),
        grades(hall.database(), worklogs),
        finals(hall.database(), classes, jobs),
        parts{hall.database(), hall.archive(), accounts, classes, worklogs, grades, finals, tars} {}
  ClassRoom(const ClassRoom&) = delete;

  // The account's class; an empty one, without a deadline, if it has none.
  Result<Class> ClassOf(int64_t class_id);

  const TarLibrary& tars;
  Accounts accounts;
  Jobs jobs;
  Classes classes;
  Worklogs worklogs;
  Grades grades;
  Finals finals;
  ClassParts parts;
};

// Members submit by the quota and until the deadline of their class, and their sources are hidden
// from others until then.
void UseRulesOfClasses(Hall& hall);

// Closes classes and asks for finals (finals.h); the hall's mutex is held. Call it about once a
// second. Returns how many finals were asked for.
Result<int> TendClasses(Hall& hall, Instant now);

}  // namespace assay
