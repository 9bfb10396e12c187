// The worklogs of a class side by side: which could not be graded, which are alike, a short table
// and a CSV file. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "worklog/rubric.h"
#include "worklog/worklog.h"

namespace assay {

struct ClassEntry {
  std::string folder;
  const Worklog* worklog = nullptr;  // null: it could not be read
  const Grade* grade = nullptr;      // null: it was not graded
  std::string trouble = {};          // why it was not graded
  std::string mentor = {}, note = {};
  std::vector<std::string> alike = {};  // sentences about other worklogs that it is the same as
};

// Entries that were graded by other buckets than most are not graded: one table has one rubric.
void SetOtherRubricsApart(std::span<ClassEntry> entries);
// Tells worklogs with one id, and hand-written sources that stand under several authors.
void FindAlike(std::span<ClassEntry> entries);

// Sentences on one line; empty: there is nothing to look at.
std::string ClassRemarks(const ClassEntry& entry);
// A line a worklog, and a summary.
std::string ClassTable(std::span<const ClassEntry> entries);
// A header, and a line a worklog.
std::string ClassCsv(std::span<const ClassEntry> entries);

}  // namespace assay
