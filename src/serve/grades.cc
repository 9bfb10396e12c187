#include "serve/grades.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/text.h"
#include "serve/words.h"

namespace assay {
namespace {

constexpr size_t kNoteBytesMax = 8000;
constexpr const char* kColumns =
    "m.revision, m.marks, a.name, m.time_s, m.upload FROM marks m JOIN accounts a ON a.id = "
    "m.mentor WHERE m.worklog = ?";

Result<KeptMarks> KeptOf(const SqliteStatement& row) {
  KeptMarks kept;
  kept.revision = row.Number(0);
  ASSAY_ASSIGN_OR_RETURN(kept.marks, ParseMarks(row.Text(1), "the kept marks"));
  kept.mentor = row.Text(2);
  kept.marked_s = row.Number(3);
  kept.upload = row.Number(4);
  return kept;
}

std::string Spaces(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

}  // namespace

Result<Rubric> RubricOf(const Class& of) {
  return of.terms.rubric.empty() ? ParseRubric(DefaultRubricText(), "the shipped rubric")
                                 : ParseRubric(of.terms.rubric, "the rubric of the class");
}

Result<std::vector<KeptMarks>> Grades::All(int64_t worklog) {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement select,
                         database_.Prepare(fmt::format("SELECT {} ORDER BY m.revision", kColumns)));
  select.Bind(worklog);
  std::vector<KeptMarks> all;
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (!found) return all;
    ASSAY_ASSIGN_OR_RETURN(KeptMarks kept, KeptOf(select));
    all.push_back(std::move(kept));
  }
}

Result<KeptMarks> Grades::Last(int64_t worklog) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare(fmt::format("SELECT {} ORDER BY m.revision DESC LIMIT 1", kColumns)));
  ASSAY_ASSIGN_OR_RETURN(const bool found, select.Bind(worklog).Step());
  if (!found) return KeptMarks();
  return KeptOf(select);
}

Result<GradedWorklog> Grades::GradedBy(const WorklogEntry& entry, const Class& of, KeptMarks kept) {
  ASSAY_ASSIGN_OR_RETURN(const Rubric rubric, RubricOf(of));
  ASSAY_ASSIGN_OR_RETURN(Worklogs::Checked checked, worklogs_.Check(entry));
  GradedWorklog graded;
  graded.entry = entry;
  Marks marks = kept.marks;
  if (kept.upload != entry.uploads) marks.lifted.clear();
  ASSAY_ASSIGN_OR_RETURN(graded.grade,
                         GradeWorklog(checked.uploaded.worklog, checked.findings, rubric, marks));
  graded.complete = !Any(checked.findings, FindingKind::kMissing) && graded.grade.open.empty();
  graded.uploaded = std::move(checked.uploaded);
  graded.findings = std::move(checked.findings);
  graded.kept = std::move(kept);
  return graded;
}

Result<GradedWorklog> Grades::Graded(const WorklogEntry& entry, const Class& of) {
  ASSAY_ASSIGN_OR_RETURN(KeptMarks kept, Last(entry.id));
  return GradedBy(entry, of, std::move(kept));
}

Result<void> Grades::Restore(int64_t worklog, int64_t mentor, const KeptMarks& kept) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement insert,
      database_.Prepare("INSERT INTO marks(worklog, revision, mentor, time_s, upload, marks) "
                        "VALUES(?, ?, ?, ?, ?, ?)"));
  insert.Bind(worklog).Bind(kept.revision).Bind(mentor).Bind(kept.marked_s).Bind(kept.upload);
  ASSAY_RETURN_IF_ERROR(insert.Bind(MarksText(kept.marks)).Step());
  return {};
}

Granted<GradedWorklog> Grades::Give(const WorklogEntry& entry, const Class& of, Marks marks,
                                    SeenWorklogState seen, const Account& mentor, Instant now) {
  if (!MayManage(mentor, of))
    return std::unexpected(Refusal(403, "only a mentor of the class gives marks"));
  if (marks.note.size() > kNoteBytesMax || marks.lifted.size() > kNoteBytesMax)
    return std::unexpected(Refusal(400, fmt::format("a note has at most {} bytes", kNoteBytesMax)));
  return WriteOrRefuse<GradedWorklog>(database_, [&]() -> Granted<GradedWorklog> {
    ASSAY_ASSIGN_OR_RETURN(const KeptMarks last, Last(entry.id));
    if (entry.uploads != seen.upload)
      return std::unexpected(Refusal(
          409, fmt::format("upload {} came after upload {}, which you opened: look at it, and mark "
                           "again",
                           entry.uploads, seen.upload)));
    if (last.revision != seen.revision)
      return std::unexpected(Refusal(
          409,
          fmt::format("{} marked this worklog at {}, after you opened it: look at those marks, "
                      "and mark again",
                      last.revision == 0 ? "nobody" : last.mentor, UtcText(last.marked_s))));
    KeptMarks kept{std::move(marks), seen.revision + 1, mentor.name, now.utc_s, entry.uploads};
    kept.marks.mentor = mentor.name;
    kept.marks.note = Spaces(std::move(kept.marks.note));
    kept.marks.lifted = Spaces(std::move(kept.marks.lifted));
    kept.marks.worklog = entry.worklog;
    ASSAY_ASSIGN_OR_RETURN(GradedWorklog graded, GradedBy(entry, of, kept));
    graded.kept.marks.facts = graded.uploaded.worklog.match.last;
    graded.grade.stale = false;
    ASSAY_RETURN_IF_ERROR(Restore(entry.id, mentor.id, graded.kept));
    return graded;
  });
}

namespace {

// The end of a line: what the member did by jobs.
std::string WorkCells(const Account& member, const std::map<int64_t, MemberWork>& work) {
  const auto found = work.find(member.id);
  const MemberWork none;
  const MemberWork& of = found == work.end() ? none : found->second;
  return fmt::format(",{},{},{},{}\n", of.jobs, of.correct, of.faster, CsvCell(FinalsText(of)));
}

std::string WithoutLineBreak(std::string line) {
  if (line.ends_with('\n')) line.pop_back();
  return line;
}

}  // namespace

std::string ClassSheet(std::span<const GradedWorklog> graded, std::span<const Account> members,
                       const Rubric& rubric, const std::map<int64_t, MemberWork>& work) {
  Grade empty;
  for (const RubricBucket& bucket : rubric.buckets)
    empty.buckets.push_back({bucket.key, bucket.name, bucket.Points(), 0, 0, false, {}});
  std::string csv = "student,role,uploads,sent,mentor,marked," +
                    WithoutLineBreak(GradeCsvHeader(empty)) +
                    ",jobs,problems_correct,problems_faster,finals\n";
  for (const GradedWorklog& each : graded)
    csv += fmt::format("{},{},{},{},{},{},{}", CsvCell(each.entry.author.name),
                       RoleName(each.entry.author.role), each.entry.uploads,
                       UtcText(each.entry.sent_s), CsvCell(each.kept.mentor),
                       UtcText(each.kept.marked_s),
                       WithoutLineBreak(GradeCsvLine(each.grade, each.uploaded.worklog,
                                                     fmt::format("worklogs/{}", each.entry.id)))) +
           WorkCells(each.entry.author, work);
  for (const Account& member : members) {
    const bool sent = std::any_of(graded.begin(), graded.end(), [&](const GradedWorklog& each) {
      return each.entry.author.id == member.id;
    });
    if (sent || member.role != Role::kStudent) continue;
    csv += fmt::format("{},{},0,,,,,,,{},,,,", CsvCell(member.name), RoleName(member.role),
                       Repeated(",,", static_cast<int>(rubric.buckets.size()))) +
           WorkCells(member, work);
  }
  return csv;
}

}  // namespace assay
