// Pages of a class: the classes, one with its members, invitations and finals, the worklogs, and
// one worklog with its grading form. Pure.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "serve/classes.h"
#include "serve/finals.h"
#include "serve/grades.h"
#include "web/layout.h"

namespace assay {

struct ClassListView {
  std::vector<Class> classes;
  bool may_make = false;
  std::string fault;  // of the form; may be empty
  int64_t now_s = 0;
};
std::string RenderClassList(const ClassListView& view, PageFrame frame);

struct MemberRow {
  Account account;
  int64_t jobs = 0, worklogs = 0;
};

struct ClassView {
  Class of;
  std::vector<MemberRow> members;
  std::vector<FinalistRow> finals;
  std::vector<std::string> awaited;     // members whose jobs have not all ended
  std::vector<Invitation> invitations;  // for mentors
  bool manages = false;
  std::string new_link;  // of an invitation that was just made: it is shown once
  std::string fault;     // of a form; may be empty
  int64_t now_s = 0;
};
std::string RenderClassOverview(const ClassView& view, PageFrame frame);

// A row of the list of worklogs.
struct WorklogRow {
  WorklogEntry entry;
  double mark = 0, points = 0;  // where the viewer sees marks; else 0
  bool marked = false, suspicious = false;
  std::string class_name = {};  // where the list has several; else empty
};

struct WorklogListView {
  std::string class_name;  // empty: none, or all
  int64_t class_id = 0;
  std::vector<WorklogRow> rows;
  int64_t hidden = 0;  // that the viewer may not read yet
  bool may_send = false;
  std::string fault;
};
std::string RenderWorklogList(const WorklogListView& view, PageFrame frame);

struct WorklogGradeView {
  GradedWorklog graded;
  std::vector<KeptMarks> earlier;  // marks that were replaced, oldest first
  Class of;
  bool sees_marks = false, manages = false;
  // As sent and refused: the form keeps them.
  Marks sent;
  std::string fault;
};
std::string RenderWorklogGrading(const WorklogGradeView& view, PageFrame frame);

struct SheetView {
  Class of;
  Rubric rubric;
  std::vector<GradedWorklog> graded;
  std::vector<Account> without;        // students without a worklog
  std::map<int64_t, MemberWork> work;  // by the account's id
};
std::string RenderSheetPage(const SheetView& view, PageFrame frame);

}  // namespace assay
