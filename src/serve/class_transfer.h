// Takes a class out of a server as one file, and into another.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "serve/class_file.h"
#include "serve/classes.h"
#include "serve/finals.h"
#include "serve/grades.h"
#include "serve/worklogs.h"

namespace assay {

// All must outlive the functions' calls.
struct ClassParts {
  Database& database;
  Store& store;
  Accounts& accounts;
  Classes& classes;
  Worklogs& worklogs;
  Grades& grades;
  Finals& finals;
  const TarLibrary& tars;
};

struct ImportedClass {
  Class made;
  // Members whose names were taken: the old name, and the new one.
  std::vector<std::pair<std::string, std::string>> renamed;
  size_t members = 0, jobs = 0, worklogs = 0;
};

// A line a worklog, graded, and each student's jobs and finals (grades.h).
Result<std::string> SheetOfClass(const ClassParts& parts, const Class& of);
Result<std::string> ExportClass(const ClassParts& parts, const Class& of, Instant now);
// All of the class comes in, or nothing. Members get no tokens: invite them by name. Verdicts are
// kept with their jobs until they stand in the archive, as a runner's are. `by`: the mentor who
// imports it. Refusals: 400 it is no whole class, 409 it is here.
Granted<ImportedClass> ImportClass(const ClassParts& parts, std::string_view bytes,
                                   const Account& by, Instant now);

}  // namespace assay
