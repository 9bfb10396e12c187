#include "worklog/mark_sheet.h"

#include <fmt/format.h>

#include <algorithm>

#include "worklog/markdown.h"

namespace assay {
namespace {

std::string BucketPart(const GradedBucket& bucket) {
  std::string text =
      fmt::format("\n## {}: {}\n\n", MarkdownEscaped(bucket.name),
                  bucket.Settled() ? fmt::format("{:g} of {:g}", bucket.mark, bucket.points)
                                   : fmt::format("not marked, of {:g}", bucket.points));
  for (const GradedLine& line : bucket.lines) {
    const bool seen = !line.line.evidence.empty();
    text += fmt::format("- {}, {:g} points: {}.{}\n",
                        !seen      ? "for the mentor's eye"
                        : line.met ? "**found**"
                                   : "**not found**",
                        line.line.points, MarkdownEscaped(line.line.text),
                        seen ? " " + MarkdownEscaped(line.found) : "");
  }
  return text;
}

// Each line of a note as a quoted paragraph.
std::string NotePart(const std::string& note) {
  std::string text;
  for (size_t begin = 0; begin < note.size();) {
    const size_t end = std::min(note.find('\n', begin), note.size());
    text += fmt::format("{}> {}\n", text.empty() ? "\n" : ">\n",
                        MarkdownEscaped(std::string_view(note).substr(begin, end - begin)));
    begin = end + 1;
  }
  return text;
}

std::string SuspiciousPart(const Grade& grade) {
  std::string text;
  for (const std::string& each : grade.suspicious) {
    const bool open = std::find(grade.open.begin(), grade.open.end(), each) != grade.open.end();
    text += fmt::format("- {}. {}\n", MarkdownEscaped(each),
                        open ? "Honesty is 0 until a mentor lifts it."
                             : "It does not count: " + MarkdownEscaped(grade.lift) + ".");
  }
  return text.empty() ? text : "\n## What looked suspicious\n\n" + text;
}

}  // namespace

std::string RenderMarkSheet(const Worklog& worklog, const Grade& grade, const Marks& marks) {
  const Words& words = worklog.words;
  std::string text = fmt::format(
      "# Marks for a worklog: {}\n\n{}, worklog {}, {}.\n\n**{}**\n",
      MarkdownEscaped(words.problem),
      words.author.empty() ? "No author" : MarkdownEscaped(words.author), MarkdownEscaped(words.id),
      marks.mentor.empty() ? "no mentor is named" : "marked by " + MarkdownEscaped(marks.mentor),
      MarkdownEscaped(TotalText(grade)));
  text += NotePart(marks.note);
  if (grade.stale) text += "\nFacts were added since the marks were given.\n";
  for (const GradedBucket& bucket : grade.buckets) text += BucketPart(bucket);
  return text + SuspiciousPart(grade);
}

}  // namespace assay
