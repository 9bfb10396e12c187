// assay worklog grade.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "cli/exit_code.h"
#include "cli/worklog_command.h"
#include "cli/worklog_match.h"
#include "report/text.h"
#include "sandbox/sandbox.h"
#include "worklog/certificate.h"
#include "worklog/class_page.h"
#include "worklog/mark_sheet.h"
#include "worklog/rubric.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRubricFile = "rubric.toml";
constexpr size_t kTomlBytesMax = 1 << 20;

Result<Rubric> ReadRubricFile(const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kTomlBytesMax));
  return ParseRubric(text, path);
}

Result<Rubric> ReadRubric(const WorklogGradeOptions& options, const WorklogFolder& folder) {
  std::string path = options.rubric;
  std::error_code code;
  if (path.empty() && fs::exists(folder.PathOf(kRubricFile), code))
    path = folder.PathOf(kRubricFile);
  if (path.empty()) return ParseRubric(DefaultRubricText(), "the shipped rubric");
  return ReadRubricFile(path);
}

// Marks that take the place of others are told. Returns whether anything was marked by this call.
Result<bool> AddMarks(const WorklogGradeOptions& options, Marks* marks) {
  const std::map<std::string, double> before = marks->points;
  for (const std::string& text : options.marks) {
    const size_t equals = text.find('=');
    char* end = nullptr;
    const std::string number = equals == std::string::npos ? "" : text.substr(equals + 1);
    const double points = std::strtod(number.c_str(), &end);
    if (equals == 0 || number.empty() || *end != '\0')
      return UsageError(fmt::format("--mark {}: give KEY=POINTS, such as depth=25", text));
    const std::string key = text.substr(0, equals);
    marks->points[key] = points;
    if (const auto old = before.find(key); old != before.end() && old->second != points)
      std::fputs(fmt::format("{} was {:g}\n", Printable(key, true), old->second).c_str(), stderr);
  }
  if (!options.mentor.empty()) {
    if (!marks->mentor.empty() && marks->mentor != options.mentor)
      std::fputs(fmt::format("the mentor was {}\n", Printable(marks->mentor, true)).c_str(),
                 stderr);
    marks->mentor = options.mentor;
  }
  if (!options.note.empty()) AddBelow(options.note, &marks->note);
  if (!options.lift.empty()) AddBelow(options.lift, &marks->lifted);
  return !options.marks.empty() || !options.note.empty() || !options.lift.empty() ||
         !options.mentor.empty();
}

// A lift is about the findings that stand now: what comes later counts again.
Result<void> LiftAll(const std::vector<Finding>& findings, Marks* marks) {
  marks->lifted_findings.clear();
  for (const Finding& finding : findings)
    if (finding.kind == FindingKind::kSuspicious || finding.kind == FindingKind::kChanged)
      marks->lifted_findings.push_back(Printable(finding.text, true));
  if (marks->lifted_findings.empty())
    return UsageError("nothing is changed or suspicious: leave out --lift");
  return {};
}

struct Graded {
  Worklog worklog;
  Grade grade;
  Marks marks;
  bool complete = false;  // nothing is missing
};

Result<Graded> GradeOne(const WorklogGradeOptions& options, const std::string& path) {
  WorklogPlace place = options.place;
  place.folder = path;
  ASSAY_ASSIGN_OR_RETURN(OpenedMatch opened, OpenToLook(place));
  const Worklog& worklog = opened.worklog;
  ASSAY_ASSIGN_OR_RETURN(const Rubric rubric, ReadRubric(options, opened.folder));
  ASSAY_ASSIGN_OR_RETURN(Marks marks, ReadMarks(opened));
  ASSAY_ASSIGN_OR_RETURN(const bool fresh, AddMarks(options, &marks));
  if (fresh) {
    marks.worklog = worklog.words.id;
    if (!options.marks.empty() || marks.facts.empty()) marks.facts = worklog.match.last;
  }
  const std::vector<Finding> findings = CheckOpened(opened);
  if (!options.lift.empty()) ASSAY_RETURN_IF_ERROR(LiftAll(findings, &marks));
  ASSAY_ASSIGN_OR_RETURN(Grade grade, GradeWorklog(worklog, findings, rubric, marks));
  if (fresh) ASSAY_RETURN_IF_ERROR(opened.folder.Write(kMarksFile, MarksText(marks)));
  const bool complete = !Any(findings, FindingKind::kMissing);
  return Graded{std::move(opened.worklog), std::move(grade), std::move(marks), complete};
}

ClassEntry EntryOf(const std::string& folder, const Result<Graded>& graded) {
  ClassEntry entry;
  entry.folder = folder;
  if (!graded) {
    entry.trouble = graded.error().message;
    return entry;
  }
  entry.worklog = &graded->worklog;
  entry.grade = &graded->grade;
  entry.mentor = graded->marks.mentor;
  entry.note = graded->marks.note;
  return entry;
}

// The evidence of each worklog in full.
std::string EvidenceText(const std::vector<ClassEntry>& entries) {
  std::string text;
  for (const ClassEntry& entry : entries) {
    if (entries.size() > 1) text += Printable(entry.folder, true) + ": ";
    text += entry.grade == nullptr ? fmt::format("not graded: {}\n", Printable(entry.trouble, true))
                                   : RenderGrade(*entry.grade, *entry.worklog);
    for (const std::string& alike : entry.alike) text += Printable(alike, true) + "\n";
    if (entries.size() > 1) text += "\n";
  }
  return text;
}

Result<void> WriteSheet(const WorklogGradeOptions& options, const Graded& graded) {
  ASSAY_RETURN_IF_ERROR(WriteFileAtomically(
      options.sheet, RenderMarkSheet(graded.worklog, graded.grade, graded.marks)));
  std::fputs(fmt::format("wrote {}\n", options.sheet).c_str(),
             options.csv == "-" ? stderr : stdout);
  return {};
}

Result<int> RunGrade(const WorklogGradeOptions& options) {
  std::vector<std::string> folders = options.folders;
  if (folders.empty()) folders.push_back(options.place.folder);
  const bool alone = folders.size() == 1;
  if (!alone && !(options.marks.empty() && options.note.empty() && options.lift.empty() &&
                  options.sheet.empty()))
    return UsageError("--mark, --note, --lift and --sheet are for one worklog at a time");
  // A rubric for all is read before any worklog: its faults are no student's.
  if (!options.rubric.empty()) ASSAY_RETURN_IF_ERROR(ReadRubricFile(options.rubric));
  std::vector<Result<Graded>> all;
  for (const std::string& folder : folders) {
    all.push_back(GradeOne(options, folder));
    if (alone && !all.back()) return std::unexpected(all.back().error());
  }
  std::vector<ClassEntry> entries;
  for (size_t i = 0; i < all.size(); ++i) entries.push_back(EntryOf(folders[i], all[i]));
  SetOtherRubricsApart(entries);
  FindAlike(entries);
  if (options.csv != "-")
    std::fputs((alone || options.evidence ? EvidenceText(entries) : ClassTable(entries)).c_str(),
               stdout);
  if (options.csv == "-") {
    std::fputs(ClassCsv(entries).c_str(), stdout);
    if (const std::string text = alone ? WithheldText(all.front()->grade) : std::string();
        !text.empty())
      std::fputs((text + "\n").c_str(), stderr);
  } else if (!options.csv.empty()) {
    ASSAY_RETURN_IF_ERROR(WriteFileAtomically(options.csv, ClassCsv(entries)));
  }
  if (!options.sheet.empty()) ASSAY_RETURN_IF_ERROR(WriteSheet(options, *all.front()));
  if (!options.page.empty())
    ASSAY_RETURN_IF_ERROR(WriteFileAtomically(options.page, RenderClassPage(entries)));
  const bool all_graded = std::all_of(entries.begin(), entries.end(), [](const ClassEntry& entry) {
    return entry.grade != nullptr;
  });
  return all_graded ? kExitGood : kExitWrong;
}

Result<int> Certify(const WorklogCertificateOptions& options) {
  WorklogGradeOptions grading;
  grading.place = options.place;
  ASSAY_ASSIGN_OR_RETURN(const Graded graded, GradeOne(grading, options.place.folder));
  if (!graded.complete)
    return UsageError(fmt::format("the worklog is not complete: assay worklog check{}",
                                  PlaceWords(options.place)));
  if (!graded.grade.open.empty())
    return UsageError(
        fmt::format("{} in the worklog {} suspicious: assay worklog check{} tells it; a mentor "
                    "lifts it by assay worklog grade{} --lift WHY",
                    Counted(static_cast<long long>(graded.grade.open.size()), "thing"),
                    graded.grade.open.size() == 1 ? "is" : "are", PlaceWords(options.place),
                    PlaceWords(options.place)));
  const std::string path = options.out.empty()
                               ? (fs::path(options.place.folder) / "certificate.pdf").string()
                               : options.out;
  ASSAY_ASSIGN_OR_RETURN(const std::string support, SupportFolder());
  ASSAY_ASSIGN_OR_RETURN(const std::string pdf,
                         DrawCertificate(SheetOf(graded.worklog, graded.grade, graded.marks.mentor),
                                         (fs::path(support) / "certificate.so").string()));
  ASSAY_RETURN_IF_ERROR(WriteFileAtomically(path, pdf));
  std::fputs(fmt::format("wrote {}\n", path).c_str(), stdout);
  return kExitGood;
}

}  // namespace

int RunWorklogGrade(const WorklogGradeOptions& options) {
  const auto code = RunGrade(options);
  return code ? *code : ReportError(code.error());
}

int RunWorklogCertificate(const WorklogCertificateOptions& options) {
  const auto code = Certify(options);
  return code ? *code : ReportError(code.error());
}

}  // namespace assay
