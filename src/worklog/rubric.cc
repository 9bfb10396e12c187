#include "worklog/rubric.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/toml.h"
#include "problem/nearest.h"
#include "report/text.h"
#include "worklog/default_rubric.h"
#include "worklog/evidence.h"
#include "worklog/fact.h"

namespace assay {
namespace {

constexpr std::string_view kHonesty = "honesty";
constexpr double kPointsMax = 1000;

std::unexpected<Error> At(const std::string& path, const toml::node& node,
                          const std::string& remedy) {
  return UsageError(fmt::format("{} line {}: {}", path, node.source().begin.line, remedy));
}

Result<toml::table> ParseSchema(std::string_view text, const std::string& path,
                                std::string_view schema) {
  if (const size_t line = ConflictLine(text); line > 0)
    return UsageError(fmt::format(
        "{} line {}: a merge left a conflict: choose a side, and remove the marks", path, line));
  auto table = ParseToml(text, path);
  if (table && (*table)["schema"].value_or(std::string()) != schema)
    return UsageError(fmt::format("{}: it must begin with schema = \"{}\"", path, schema));
  return table;
}

Result<void> RefuseOthers(const toml::table& table, const std::vector<std::string>& known,
                          const std::string& path) {
  for (const auto& [key, value] : table)
    if (std::find(known.begin(), known.end(), key.str()) == known.end())
      return At(path, value,
                fmt::format("no such key: {}{}", key.str(), Suggestion(key.str(), known)));
  return {};
}

Result<RubricLine> ParseLine(const toml::node& node, const std::string& path) {
  const toml::table* table = node.as_table();
  if (table == nullptr) return At(path, node, "write a line as {points = 5, text = \"...\"}");
  ASSAY_RETURN_IF_ERROR(RefuseOthers(*table, {"evidence", "text", "points"}, path));
  RubricLine line{(*table)["evidence"].value_or(std::string()),
                  (*table)["text"].value_or(std::string()), (*table)["points"].value_or(-1.0)};
  if (line.text.empty()) return At(path, node, "text is missing");
  if (!(line.points >= 0 && line.points <= kPointsMax))
    return At(path, node, fmt::format("points are missing, or not from 0 to {:g}", kPointsMax));
  if (!line.evidence.empty() && FindEvidence(line.evidence) == nullptr)
    return At(path, node,
              fmt::format("no such evidence: {}; there are {}; leave it out for a line that you "
                          "look for yourself",
                          line.evidence, EvidenceNames()));
  return line;
}

// A TOML string on one line, in which line breaks are "\n".
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (begin > 0) quoted += "\\n";
    for (const char letter : Printable(text.substr(begin, end - begin), true)) {
      if (letter == '"' || letter == '\\') quoted += '\\';
      quoted += letter;
    }
    begin = end + 1;
  }
  return quoted + "\"";
}

}  // namespace

double RubricBucket::Points() const {
  double points = 0;
  for (const RubricLine& line : lines) points += line.points;
  return points;
}

std::string CsvCell(std::string_view text) {
  std::string cell = Printable(text, true);
  // A spreadsheet would compute what begins so.
  if (!cell.empty() && std::string_view("=+-@").find(cell.front()) != std::string_view::npos)
    cell.insert(cell.begin(), '\'');
  if (cell.find_first_of(",\"") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char letter : cell)
    quoted += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return quoted + "\"";
}

std::string_view DefaultRubricText() { return kDefaultRubric; }

std::string EvidenceNames() {
  std::string names;
  for (const EvidenceRule& rule : AllEvidence())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", rule.name);
  return names;
}

std::string BucketKeys(const Rubric& rubric) {
  std::string keys;
  for (const RubricBucket& bucket : rubric.buckets)
    keys += fmt::format("{}{} ({:g})", keys.empty() ? "" : ", ", bucket.key, bucket.Points());
  return keys;
}

Result<Rubric> ParseRubric(std::string_view text, const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(const toml::table table, ParseSchema(text, path, "assay.rubric/1"));
  ASSAY_RETURN_IF_ERROR(RefuseOthers(table, {"schema", "bucket"}, path));
  Rubric rubric;
  const toml::array* buckets = table["bucket"].as_array();
  if (buckets == nullptr || buckets->empty())
    return UsageError(fmt::format("{}: write at least one [[bucket]]", path));
  for (const toml::node& node : *buckets) {
    const toml::table* each = node.as_table();
    if (each == nullptr) return At(path, node, "write [[bucket]]");
    ASSAY_RETURN_IF_ERROR(RefuseOthers(*each, {"key", "name", "line"}, path));
    RubricBucket bucket{
        (*each)["key"].value_or(std::string()), (*each)["name"].value_or(std::string()), {}};
    if (bucket.key.empty() || bucket.name.empty())
      return At(path, node, "a bucket has a key and a name");
    for (const RubricBucket& other : rubric.buckets)
      if (other.key == bucket.key) return At(path, node, "two buckets have this key");
    const toml::array* lines = (*each)["line"].as_array();
    if (lines == nullptr || lines->empty()) return At(path, node, "a bucket has lines");
    for (const toml::node& line : *lines) {
      ASSAY_ASSIGN_OR_RETURN(RubricLine parsed, ParseLine(line, path));
      bucket.lines.push_back(std::move(parsed));
    }
    rubric.buckets.push_back(std::move(bucket));
  }
  return rubric;
}

void AddBelow(std::string_view text, std::string* note) {
  for (size_t begin = 0; begin <= note->size();) {
    const size_t end = std::min(note->find('\n', begin), note->size());
    if (std::string_view(*note).substr(begin, end - begin) == text) return;
    begin = end + 1;
  }
  if (!note->empty()) *note += '\n';
  *note += text;
}

std::string MarksText(const Marks& marks) {
  std::string text = fmt::format(
      "# A mentor's marks, by assay worklog grade.\nschema = \"assay.marks/1\"\nworklog = {}\n"
      "facts = {}\nmentor = {}\nnote = {}\nlifted = {}\n",
      Quoted(marks.worklog), Quoted(marks.facts), Quoted(marks.mentor), Quoted(marks.note),
      Quoted(marks.lifted));
  if (!marks.lifted_findings.empty()) {
    text += "lifted_findings = [\n";
    for (const std::string& finding : marks.lifted_findings)
      text += fmt::format("  {},\n", Quoted(finding));
    text += "]\n";
  }
  text += "\n[points]\n";
  for (const auto& [key, points] : marks.points)
    text += fmt::format("{} = {}\n", Quoted(key), points);
  return text;
}

Result<Marks> ParseMarks(std::string_view text, const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(const toml::table table, ParseSchema(text, path, "assay.marks/1"));
  ASSAY_RETURN_IF_ERROR(RefuseOthers(
      table,
      {"schema", "worklog", "facts", "mentor", "note", "lifted", "lifted_findings", "points"},
      path));
  const auto word = [&](const char* key) { return table[key].value_or(std::string()); };
  Marks marks{word("worklog"), word("facts"), word("mentor"), word("note"), word("lifted"), {}, {}};
  if (const toml::array* findings = table["lifted_findings"].as_array())
    for (const toml::node& finding : *findings)
      marks.lifted_findings.push_back(finding.value_or(std::string()));
  if (const toml::table* points = table["points"].as_table())
    for (const auto& [key, value] : *points) {
      const auto number = value.value<double>();
      if (!number) return At(path, value, "a mark is a number");
      marks.points[std::string(key.str())] = *number;
    }
  return marks;
}

std::vector<Finding> LiftFindings(std::vector<Finding> findings, const Marks& marks) {
  if (marks.lifted.empty()) return findings;
  const auto& lifted = marks.lifted_findings;
  for (Finding& finding : findings) {
    if (finding.kind != FindingKind::kSuspicious && finding.kind != FindingKind::kChanged) continue;
    // A file keeps the text as it is printed.
    const std::string text = Printable(finding.text, true);
    if (lifted.empty() || std::find(lifted.begin(), lifted.end(), text) != lifted.end()) {
      finding.kind = FindingKind::kLifted;
      finding.next.clear();
    }
  }
  return findings;
}

std::string LiftText(const Marks& marks) {
  if (marks.lifted.empty()) return {};
  return fmt::format("lifted by {}: {}", marks.mentor.empty() ? "the mentor" : marks.mentor,
                     marks.lifted);
}

Result<Grade> GradeWorklog(const Worklog& worklog, const std::vector<Finding>& found,
                           const Rubric& rubric, const Marks& marks) {
  const std::vector<Finding> findings = LiftFindings(found, marks);
  Grade grade;
  for (const Finding& finding : findings)
    if (finding.kind == FindingKind::kSuspicious || finding.kind == FindingKind::kChanged ||
        finding.kind == FindingKind::kLifted) {
      grade.suspicious.push_back(finding.text);
      if (finding.kind != FindingKind::kLifted) grade.open.push_back(finding.text);
    }
  grade.lifted = !grade.suspicious.empty() && grade.open.empty();
  if (Any(findings, FindingKind::kLifted)) grade.lift = LiftText(marks);
  grade.stale = !marks.facts.empty() && marks.facts != worklog.match.last;
  for (const RubricBucket& bucket : rubric.buckets) {
    GradedBucket graded{bucket.key, bucket.name, bucket.Points(), 0, 0, false, {}};
    for (const RubricLine& line : bucket.lines) {
      GradedLine each{line, false, "the mentor looks for it", {}};
      if (const EvidenceRule* rule = FindEvidence(line.evidence)) {
        LineEvidence evidence = rule->look(worklog, findings);
        each.met = evidence.met;
        each.found = std::move(evidence.found);
        each.verdicts = std::move(evidence.verdicts);
      }
      if (each.met) graded.proposed += line.points;
      graded.lines.push_back(std::move(each));
    }
    const auto marked = marks.points.find(bucket.key);
    graded.marked = marked != marks.points.end();
    graded.mark = graded.marked ? marked->second : graded.proposed;
    if (!(graded.mark >= 0 && graded.mark <= graded.points))
      return UsageError(fmt::format("{} takes 0 to {:g} points, not {:g}", bucket.key,
                                    graded.points, graded.mark));
    // A hidden or fudged result costs all honesty, until the mentor says that it was neither.
    graded.withheld = bucket.key == kHonesty && !grade.open.empty();
    if (graded.marked) graded.given = graded.mark;
    if (graded.withheld) graded.mark = 0;
    grade.points += graded.points;
    grade.mark += graded.mark;
    grade.buckets.push_back(std::move(graded));
  }
  for (const auto& [key, points] : marks.points)
    if (std::none_of(grade.buckets.begin(), grade.buckets.end(),
                     [&](const GradedBucket& bucket) { return bucket.key == key; }))
      return UsageError(
          fmt::format("the rubric has no bucket {}; it has {}", key, BucketKeys(rubric)));
  return grade;
}

std::string MarkText(const GradedBucket& bucket) {
  return bucket.Settled() ? fmt::format("{:g}", bucket.mark) : "not marked";
}

std::string TotalText(const Grade& grade) {
  double mark = 0, points = 0;
  std::string unmarked;
  bool any = false;
  for (const GradedBucket& bucket : grade.buckets) {
    any = any || bucket.marked;
    if (bucket.Settled()) {
      mark += bucket.mark;
      points += bucket.points;
    } else {
      unmarked += (unmarked.empty() ? "" : ", ") + bucket.key;
    }
  }
  if (!any) return "not marked";
  return fmt::format("{:g} of {:g}{}{}", mark, points,
                     unmarked.empty() ? "" : "; not marked: ", unmarked);
}

std::string WithheldText(const Grade& grade) {
  for (const GradedBucket& bucket : grade.buckets)
    if (bucket.withheld && bucket.marked && bucket.given > 0)
      return fmt::format(
          "{} stays 0 until what is suspicious is lifted by --lift WHY; your mark of {:g} is kept, "
          "and counts from then on",
          bucket.key, bucket.given);
  return {};
}

std::string RenderGrade(const Grade& grade, const Worklog& worklog) {
  const auto safe = [](std::string_view text) { return Printable(text, true); };
  std::string text =
      fmt::format("{}, {}\n", safe(worklog.words.problem),
                  worklog.words.author.empty() ? "no author" : safe(worklog.words.author));
  for (const GradedBucket& bucket : grade.buckets) {
    text += fmt::format("\n{}, {}: {}{}; evidence for {:g} of {:g}\n", safe(bucket.key),
                        safe(bucket.name), MarkText(bucket), bucket.withheld ? " (see below)" : "",
                        bucket.proposed, bucket.points);
    for (const GradedLine& line : bucket.lines) {
      text += fmt::format("  {} {:>4g}  {}\n          {}\n", line.met ? "+" : "-", line.line.points,
                          safe(line.line.text), safe(line.found));
      if (line.verdicts.empty()) continue;
      text += "          verdicts";
      for (const std::string& id : line.verdicts) text += " " + safe(id);
      text += "\n";
    }
  }
  if (!grade.open.empty()) {
    text += "\nSuspicious: honesty is 0 until it is lifted (--lift WHY):\n";
    for (const std::string& each : grade.open) text += "  ! " + safe(each) + "\n";
  }
  if (const std::string withheld = WithheldText(grade); !withheld.empty())
    text += "  " + withheld + "\n";
  if (!grade.lift.empty()) {
    text += fmt::format("\nSuspicious, and {}\n", safe(grade.lift));
    for (const std::string& each : grade.suspicious)
      if (std::find(grade.open.begin(), grade.open.end(), each) == grade.open.end())
        text += "  + " + safe(each) + "\n";
  }
  if (grade.stale) text += "\nFacts were added since the marks were given.\n";
  double proposed = 0;
  for (const GradedBucket& bucket : grade.buckets) proposed += bucket.proposed;
  return text + fmt::format("\ntotal: {}\nevidence for {:g} of {:g}\n", safe(TotalText(grade)),
                            proposed, grade.points);
}

std::string GradeCsvHeader(const Grade& grade) {
  std::string line = "folder,worklog,author,problem";
  for (const GradedBucket& bucket : grade.buckets)
    line += fmt::format(",{},{}", CsvCell(bucket.key), CsvCell(bucket.key + " by evidence"));
  return line + ",total,of,suspicious,lifted\n";
}

std::string GradeCsvLine(const Grade& grade, const Worklog& worklog, const std::string& folder) {
  std::string line = fmt::format("{},{},{},{}", CsvCell(folder), CsvCell(worklog.words.id),
                                 CsvCell(worklog.words.author), CsvCell(worklog.words.problem));
  for (const GradedBucket& bucket : grade.buckets)
    line += fmt::format(",{},{:g}", MarkText(bucket), bucket.proposed);
  const bool settled = std::all_of(grade.buckets.begin(), grade.buckets.end(),
                                   [](const GradedBucket& bucket) { return bucket.Settled(); });
  return line + fmt::format(",{},{:g},{},{}\n",
                            settled ? fmt::format("{:g}", grade.mark) : "not marked", grade.points,
                            grade.suspicious.size(), grade.lifted ? "yes" : "no");
}

}  // namespace assay
