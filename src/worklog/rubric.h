// The rubric of a worklog: buckets of points, the evidence for each line, suspicious things, and a
// mentor's marks (docs/worklog.md). Speed earns nothing by itself. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "worklog/check.h"

namespace assay {

struct RubricLine {
  std::string evidence;  // one of EvidenceNames(); empty: the mentor looks for it
  std::string text;
  double points = 0;
};

struct RubricBucket {
  std::string key;  // "honesty": 0 as long as anything is suspicious
  std::string name;
  std::vector<RubricLine> lines;

  double Points() const;
};

struct Rubric {
  std::vector<RubricBucket> buckets;
};

// The rubric that comes with Assay: 30, 30, 30 and 10 points.
std::string_view DefaultRubricText();
// Errors (kUsage) name `path`, the line and the remedy.
Result<Rubric> ParseRubric(std::string_view text, const std::string& path);
std::string EvidenceNames();  // with commas
// The keys of a rubric's buckets with their points: "correctness (30), depth (30)".
std::string BucketKeys(const Rubric& rubric);

// A mentor's marks.
struct Marks {
  std::string worklog, facts;  // the id, and the hash of the last fact that was marked
  std::string mentor, note;
  std::string lifted;  // why suspicious things are none; empty: they count
  // The findings that this is about; empty: all.
  std::vector<std::string> lifted_findings;
  std::map<std::string, double> points;  // by bucket
};
std::string MarksText(const Marks& marks);
// Adds text below what stands in a note or a reason, which stays; nothing that is there already.
void AddBelow(std::string_view text, std::string* note);
Result<Marks> ParseMarks(std::string_view text, const std::string& path);
// The findings, of which those that a mentor lifted are kLifted.
std::vector<Finding> LiftFindings(std::vector<Finding> findings, const Marks& marks);
// The reason of a lift, with who gave it, in one line; empty: nothing was lifted.
std::string LiftText(const Marks& marks);

struct GradedLine {
  RubricLine line;
  bool met = false;
  std::string found;                  // in one sentence
  std::vector<std::string> verdicts;  // ids
};

struct GradedBucket {
  std::string key, name;
  double points = 0, proposed = 0, mark = 0;  // mark: the mentor's, else as proposed
  bool marked = false;                        // by the mentor
  std::vector<GradedLine> lines;
  bool withheld = false;  // honesty, which is 0 until what is suspicious is lifted
  double given = 0;       // the mentor's mark, if `marked`; `mark` is 0 if it is withheld
  bool Settled() const { return marked || withheld; }
};

struct Grade {
  std::vector<GradedBucket> buckets;
  std::vector<std::string> suspicious;
  std::vector<std::string> open;  // those of `suspicious` that no mentor lifted
  bool lifted = false;            // something was suspicious, and all of it is lifted
  std::string lift;               // LiftText; empty: nothing was lifted
  double points = 0, mark = 0;
  bool stale = false;  // facts came after the marks
};

// `findings`: of CheckWorklog. Errors (kUsage): a mark names no bucket, or has too many points.
Result<Grade> GradeWorklog(const Worklog& worklog, const std::vector<Finding>& findings,
                           const Rubric& rubric, const Marks& marks);

// "25", or "not marked".
std::string MarkText(const GradedBucket& bucket);
// "90 of 100", "25 of 30; not marked: analysis, honesty" or "not marked".
std::string TotalText(const Grade& grade);
// That the mark for honesty is kept and does not count yet; empty: it is not so.
std::string WithheldText(const Grade& grade);
std::string RenderGrade(const Grade& grade, const Worklog& worklog);
// Text as one cell of a CSV file, which no spreadsheet takes for a formula.
std::string CsvCell(std::string_view text);
// A line a worklog, of which all were graded by one rubric; the first call's header names buckets.
std::string GradeCsvHeader(const Grade& grade);
std::string GradeCsvLine(const Grade& grade, const Worklog& worklog, const std::string& folder);

}  // namespace assay
