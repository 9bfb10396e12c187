// The worklogs of a class, one with its grading form, and the sheet (class_pages.h).
#include <algorithm>

#include "report/text.h"
#include "serve/words.h"
#include "web/class_pages.h"
#include "web/parts.h"

namespace assay {
namespace {

Html FaultNotice(const std::string& fault) {
  return fault.empty()
             ? Html()
             : Markup("<div class=\"notice bad\" role=\"alert\"><p>{}</p></div>\n", fault);
}

std::string MarkText(double mark, double points) {
  return fmt::format("{:g} of {:g}", mark, points);
}

Html MarkCell(const WorklogRow& row) {
  if (row.points <= 0) return {};
  return Markup("{}{}", MarkText(row.mark, row.points), row.marked ? "" : " *");
}

Html SuspicionBadge(bool suspicious) {
  return suspicious ? Markup("<span class=\"badge bad\">! suspicious</span>") : Html();
}

struct FindingWord {
  std::string_view sign, name, kind;
};

FindingWord WordOf(FindingKind kind) {
  switch (kind) {
    case FindingKind::kMissing:
      return {"○", "missing", "warn"};
    case FindingKind::kChanged:
      return {"!", "changed", "bad"};
    case FindingKind::kSuspicious:
      return {"!", "suspicious", "bad"};
    case FindingKind::kLifted:
    case FindingKind::kNote:
      return {"·", "note", "faint"};
  }
  return {};
}

Html Findings(const GradedWorklog& graded) {
  if (graded.findings.empty())
    return Markup(
        "<p class=\"good\">✔ The check finds nothing missing, changed or suspicious.</p>\n");
  PageTable table("findings of the check",
                  {{"kind", ""}, {"section", ""}, {"finding", "why"}, {"what to do", "why"}});
  for (const Finding& each : graded.findings) {
    const FindingWord word = WordOf(each.kind);
    table.Row({Markup("<span class=\"badge {}\"><span aria-hidden=\"true\">{}</span> {}</span>",
                      word.kind, word.sign, word.name),
               Text(each.section ? SectionTitle(*each.section) : "the whole"), Text(each.text),
               each.next.empty() ? Html() : Markup("<code>{}</code>", each.next)});
  }
  return table.End();
}

// The verdicts are of the author's archive, which this server need not have: no links.
Html BucketLines(const GradedBucket& bucket) {
  Html items;
  for (const GradedLine& line : bucket.lines) {
    Html verdicts;
    for (const std::string& id : line.verdicts) verdicts += Markup(" <code>{}</code>", id);
    items += Markup("<li><span class=\"{}\">{}</span> {:g}: {}<div>{}{}</div></li>\n",
                    line.met ? "good" : "faint", line.met ? "✔" : "○", line.line.points,
                    line.line.text, line.found, verdicts);
  }
  return Markup("<ul class=\"evidence\">\n{}</ul>\n", items);
}

Html Buckets(const Grade& grade) {
  Html html;
  for (const GradedBucket& bucket : grade.buckets)
    html += Markup("<h3>{}: {}{}</h3>\n", bucket.name, MarkText(bucket.mark, bucket.points),
                   bucket.marked ? fmt::format(", marked (evidence for {:g})", bucket.proposed)
                   : bucket.mark < bucket.proposed ? ", until the suspicion is lifted"
                                                   : ", by the evidence") +
            BucketLines(bucket);
  return html;
}

Html Suspicions(const Grade& grade) {
  if (grade.suspicious.empty()) return {};
  Html items;
  for (const std::string& each : grade.suspicious) items += Markup("<li>{}</li>\n", each);
  return Markup("<div class=\"notice bad\"><p><strong>{}</strong></p><ul>\n{}</ul></div>\n",
                grade.lifted ? "Suspicious, and lifted by the mentor"
                             : "Suspicious: honesty is 0 until a mentor lifts it",
                items);
}

// The field of a bucket's points, as they were sent, or are, or empty for the evidence.
Html PointsField(const GradedBucket& bucket, const Marks& marks) {
  const auto found = marks.points.find(bucket.key);
  return Markup(
      "<div class=\"field\"><label for=\"p-{0}\">{1}, of {2:g}</label><input id=\"p-{0}\" "
      "name=\"points.{0}\" type=\"number\" min=\"0\" max=\"{2:g}\" step=\"0.5\" value=\"{3}\" "
      "placeholder=\"{4:g} by the evidence\"></div>\n",
      bucket.key, bucket.name, bucket.points,
      found == marks.points.end() ? std::string() : fmt::format("{:g}", found->second),
      bucket.proposed);
}

Html GradeForm(const WorklogGradeView& view, const PageFrame& frame) {
  const GradedWorklog& graded = view.graded;
  const Marks& marks = view.fault.empty() ? graded.kept.marks : view.sent;
  Html fields;
  for (const GradedBucket& bucket : graded.grade.buckets) fields += PointsField(bucket, marks);
  const bool lifted_before = graded.kept.upload == graded.entry.uploads || !view.fault.empty();
  if (!graded.grade.suspicious.empty())
    fields += Markup(
        "<div class=\"field\"><label for=\"lift\">why the suspicious things are none; empty: "
        "honesty stays 0</label><input id=\"lift\" name=\"lift\" value=\"{}\"></div>\n",
        lifted_before ? marks.lifted : std::string());
  fields += Markup(
      "<div class=\"field\"><label for=\"note\">a word for the author</label><input id=\"note\" "
      "name=\"note\" value=\"{}\" maxlength=\"2000\"></div>\n",
      marks.note);
  return Markup(
      "<section class=\"screen\">\n<h2>Mark it</h2>\n<p class=\"faint\">An empty field takes the "
      "points of the evidence. Marks replace those before them, which are kept.</p>\n<form "
      "method=\"post\" action=\"/worklogs/{}/grade\">{}<input type=\"hidden\" name=\"revision\" "
      "value=\"{}\"><input type=\"hidden\" name=\"upload\" value=\"{}\">{}<p><button "
      "class=\"first\">Give these marks</button></p></form></section>\n",
      graded.entry.id, CsrfField(frame.viewer), graded.kept.revision, graded.entry.uploads, fields);
}

Html MarksPart(const WorklogGradeView& view, const PageFrame& frame) {
  if (!view.sees_marks) return {};
  const GradedWorklog& graded = view.graded;
  Html part = Heading("Marks") + Suspicions(graded.grade);
  if (graded.kept.revision == 0)
    part += Paragraph("No mentor has marked it: these are the points of the evidence.", "faint");
  else
    part += Markup("<p>Marked by {} at {} UTC, for upload {}.{}</p>\n", graded.kept.mentor,
                   TimeText(UtcText(graded.kept.marked_s)), graded.kept.upload,
                   graded.kept.upload == graded.entry.uploads
                       ? ""
                       : " Another upload came since: look again.");
  if (!graded.kept.marks.note.empty())
    part += Markup("<div class=\"notice\"><p>{}</p></div>\n", graded.kept.marks.note);
  part += Buckets(graded.grade);
  if (view.manages) part += FaultNotice(view.fault) + GradeForm(view, frame);
  if (view.earlier.empty()) return part;
  PageTable table("marks before", {{"number", "n"}, {"by", ""}, {"at (UTC)", ""}, {"points", ""}});
  for (const KeptMarks& each : view.earlier) {
    std::string points;
    for (const auto& [key, value] : each.marks.points)
      points += fmt::format("{}{} {:g}", points.empty() ? "" : ", ", key, value);
    table.Row({Markup("{}", each.revision), Text(each.mentor), TimeText(UtcText(each.marked_s)),
               Text(points)});
  }
  return part + Fold("Marks before these", table.End());
}

Html Versions(const Match& match) {
  PageTable table(
      "versions",
      {{"version", "name"}, {"by", ""}, {"outcome", ""}, {"speedup", ""}, {"why", "why"}});
  for (const VersionFact& each : match.versions) {
    const BaselineResult* speed = each.Speed();
    table.Row({Text(each.said.version), Text(PlayerName(each.said.player)),
               each.verdict ? OutcomeBadge(OutcomeName(each.verdict->outcome)) : Text(each.trouble),
               speed == nullptr
                   ? Text("-")
                   : Markup("{} <span class=\"faint\">{}</span>", RatioOrDash(speed->speedup),
                            RangeText(speed->ci_low, speed->ci_high)),
               Text(each.said.why)});
  }
  return table.empty() ? Paragraph("Nothing was measured yet.", "faint") : table.End();
}

Html SendForm(const PageFrame& frame) {
  return Heading("Send a worklog") +
         Command("assay worklog submit --in FOLDER --server URL --token-file FILE") +
         Markup(
             "<form method=\"post\" action=\"/worklogs\" enctype=\"multipart/form-data\">{}<div "
             "class=\"field\"><label for=\"tar\">or its folder, packed: tar -czf worklog.tar.gz "
             "-C FOLDER .</label><input id=\"tar\" name=\"tar\" type=\"file\" "
             "accept=\".tar,.gz,.tgz\" required></div><p><button class=\"first\">Send it</button>"
             "</p></form>\n",
             CsrfField(frame.viewer));
}

// A member's jobs and finals, as cells of the sheet.
void AddWork(const Account& member, const std::map<int64_t, MemberWork>& work,
             std::vector<Html>* cells) {
  const auto found = work.find(member.id);
  const MemberWork of = found == work.end() ? MemberWork() : found->second;
  for (const int64_t count : {of.jobs, of.correct, of.faster})
    cells->push_back(Markup("{}", count));
  cells->push_back(Text(FinalsText(of)));
}

}  // namespace

std::string RenderWorklogList(const WorklogListView& view, PageFrame frame) {
  frame.title = "Worklogs";
  frame.place = Place::kWorklogs;
  Html main = Markup("<h1>Worklogs{}</h1>\n",
                     view.class_name.empty() ? std::string() : " of " + view.class_name);
  main += FaultNotice(view.fault);
  if (view.class_id != 0)
    main += Markup("<p><a href=\"/classes/{}\">The class</a></p>\n", view.class_id);
  else
    main += Html::Trusted("<p><a href=\"/classes\">Classes</a></p>\n");
  if (view.rows.empty()) {
    main += Paragraph(view.hidden == 0 ? "No worklogs yet." : "None of your own yet.", "faint");
  } else {
    // Of one class the heading says which.
    const bool several = std::ranges::any_of(
        view.rows, [](const WorklogRow& row) { return !row.class_name.empty(); });
    std::vector<Column> columns{{"worklog", "name"}, {"by", ""}};
    if (several) columns.push_back({"class", "name"});
    for (const Column& column : std::initializer_list<Column>{
             {"uploads", "n"}, {"sent (UTC)", ""}, {"marks", "n"}, {"", ""}})
      columns.push_back(column);
    PageTable table("worklogs", columns);
    bool unmarked = false;
    for (const WorklogRow& row : view.rows) {
      unmarked |= row.points > 0 && !row.marked;
      std::vector<Html> cells{
          Markup("<a href=\"/worklogs/{}\">{}</a>", row.entry.id, row.entry.problem),
          Markup("{} {}", row.entry.author.name, RoleTag(row.entry.author.role))};
      if (several) cells.push_back(Text(row.class_name));
      cells.push_back(Markup("{}", row.entry.uploads));
      cells.push_back(TimeText(UtcText(row.entry.sent_s)));
      cells.push_back(MarkCell(row));
      cells.push_back(SuspicionBadge(row.suspicious));
      table.AddRow(cells);
    }
    main += table.End();
    if (unmarked) main += Paragraph("* by the evidence: no mentor has marked it.", "faint");
  }
  if (view.hidden > 0)
    main += Paragraph(fmt::format("{} of others {} hidden until the deadline.",
                                  Counted(view.hidden, "worklog"), view.hidden == 1 ? "is" : "are"),
                      "faint");
  if (view.may_send) main += SendForm(frame);
  return RenderPage(frame, main);
}

std::string RenderWorklogGrading(const WorklogGradeView& view, PageFrame frame) {
  const WorklogEntry& entry = view.graded.entry;
  const Worklog& worklog = view.graded.uploaded.worklog;
  frame.title = "Worklog " + entry.problem;
  frame.place = Place::kWorklogs;
  Html main =
      Markup("<h1>{}</h1>\n<p class=\"lead\">A worklog by {} {}, tier {}.</p>\n", entry.problem,
             entry.author.name, RoleTag(entry.author.role), worklog.words.tier);
  main += Markup(
      "<p><a class=\"button first\" href=\"/worklogs/{0}/report\">Read the report</a> <a "
      "class=\"button\" href=\"/api/worklogs/{0}/tar\">All files</a>{1}</p>\n",
      entry.id,
      view.sees_marks && view.graded.complete
          ? Markup(" <a class=\"button\" href=\"/api/worklogs/{}/certificate.pdf\">Certificate</a>",
                   entry.id)
          : Html());
  Html facts = FactRow("author, by the worklog", Text(worklog.words.author));
  facts += FactRow("size", Text(worklog.words.size));
  facts +=
      FactRow("sent", Markup("{} UTC, upload {}", TimeText(UtcText(entry.sent_s)), entry.uploads));
  facts += FactRow("SHA-256 of its tar", Markup("<code>{}</code>", entry.tar));
  main += Facts(facts);
  main += Heading("Versions") + Versions(worklog.match);
  main += Heading("Check") + Findings(view.graded);
  main += MarksPart(view, frame);
  main += Markup("<p class=\"screen\"><a href=\"/api/worklogs/{}\">The worklog as JSON</a></p>\n",
                 entry.id);
  return RenderPage(frame, main);
}

std::string RenderSheetPage(const SheetView& view, PageFrame frame) {
  frame.title = "Grading sheet of " + view.of.terms.name;
  frame.place = Place::kClasses;
  Html main = Markup(
      "<h1>Grading sheet</h1>\n<p class=\"lead\"><a href=\"/classes/{}\">{}</a>, by "
      "student. Speed earns no points.</p>\n",
      view.of.id, view.of.terms.name);
  std::vector<Column> columns = {{"student", "name"}, {"worklog", "name"}, {"total", "n"}};
  for (const RubricBucket& bucket : view.rubric.buckets) columns.push_back({bucket.key, "n"});
  columns.push_back({"marked by", "name"});
  columns.push_back({"jobs", "n"});
  columns.push_back({"solved", "n"});
  columns.push_back({"faster", "n"});
  columns.push_back({"finals", "name"});
  columns.push_back({"", ""});
  PageTable table("grading sheet", columns);
  for (const GradedWorklog& each : view.graded) {
    std::vector<Html> cells = {
        Text(each.entry.author.name),
        Markup("<a href=\"/worklogs/{}\">{}</a>", each.entry.id, each.entry.problem),
        Markup("<b>{}</b>", MarkText(each.grade.mark, each.grade.points))};
    for (const GradedBucket& bucket : each.grade.buckets)
      cells.push_back(Markup("{:g}{}", bucket.mark, bucket.marked ? "" : " *"));
    cells.push_back(Text(each.kept.mentor));
    AddWork(each.entry.author, view.work, &cells);
    cells.push_back(SuspicionBadge(!each.grade.suspicious.empty() && !each.grade.lifted));
    table.AddRow(cells);
  }
  for (const Account& each : view.without) {
    std::vector<Html> cells(view.rubric.buckets.size() + 4);
    cells[0] = Text(each.name);
    cells[1] = Markup("<span class=\"faint\">no worklog</span>");
    AddWork(each, view.work, &cells);
    cells.emplace_back();
    table.AddRow(cells);
  }
  main += table.empty() ? Paragraph("No students yet.", "faint") : table.End();
  main += Paragraph("* the points of the evidence: no mentor gave others.", "faint");
  main += Paragraph(
      "Jobs and finals earn no points by themselves. Solved are problems with a correct candidate. "
      "Verdicts of members' own runners are left out.",
      "faint");
  main += Markup("<p><a class=\"button\" href=\"/api/classes/{}/sheet.csv\">As CSV</a></p>\n",
                 view.of.id);
  return RenderPage(frame, main);
}

}  // namespace assay
