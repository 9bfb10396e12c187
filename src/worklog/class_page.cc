#include "worklog/class_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "report/text.h"
#include "worklog/facts_text.h"
#include "worklog/page_style.h"

namespace assay {
namespace {

std::string Best(const Worklog& worklog, Player player) {
  const VersionFact* best = worklog.match.Best(player);
  if (best == nullptr) return "none";
  const VersionRow row = RowOf(*best);
  return fmt::format("{} {} ({})", row.name, row.speedup, row.interval);
}

std::string Row(const ClassEntry& entry) {
  const Worklog& worklog = *entry.worklog;
  const std::string& author = worklog.words.author;
  std::string html = fmt::format(
      "<tr><th scope=\"row\">{}</th><td>{}, tier {}</td><td class=\"n\"><b>{:g}</b> of {:g}</td>",
      HtmlText(author.empty() ? entry.folder : author), HtmlText(worklog.words.problem),
      worklog.words.tier, entry.grade->mark, entry.grade->points);
  for (const GradedBucket& bucket : entry.grade->buckets)
    html += fmt::format("<td class=\"n\">{:g}{}</td>", bucket.mark, bucket.marked ? "" : "*");
  html += fmt::format("<td>{}</td><td>{}</td><td>", HtmlText(Best(worklog, Player::kHand)),
                      HtmlText(Best(worklog, Player::kModel)));
  if (entry.grade->suspicious.empty()) {
    html += "nothing";
  } else {
    std::string list;
    for (const std::string& each : entry.grade->suspicious)
      list += fmt::format("<li>{}</li>\n", HtmlText(each));
    html += FoldedHtml(Counted(static_cast<long long>(entry.grade->suspicious.size()), "thing") +
                           (entry.grade->lifted ? ", lifted" : ""),
                       "<ul>" + list + "</ul>\n", true);
  }
  return html + "</td></tr>\n";
}

}  // namespace

std::string RenderClassPage(std::span<const ClassEntry> entries) {
  std::vector<ClassEntry> sorted(entries.begin(), entries.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const ClassEntry& a, const ClassEntry& b) {
    return a.worklog->words.author < b.worklog->words.author;
  });
  std::string html = PageHead("The worklogs of a class", "class");
  html += fmt::format(
      "<h1>The worklogs of a class</h1>\n<p class=\"faint\">{}. By author: speed earns no "
      "points.</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"worklogs\">\n"
      "<table><thead><tr><th scope=\"col\">author</th><th scope=\"col\">problem</th>"
      "<th scope=\"col\" class=\"n\">total</th>",
      Counted(static_cast<long long>(sorted.size()), "worklog"));
  if (!sorted.empty())
    for (const GradedBucket& bucket : sorted.front().grade->buckets)
      html += fmt::format("<th scope=\"col\" class=\"n\">{}</th>", HtmlText(bucket.key));
  html +=
      "<th scope=\"col\">by hand</th><th scope=\"col\">the model</th>"
      "<th scope=\"col\">suspicious</th></tr></thead>\n"
      "<tbody>\n";
  for (const ClassEntry& entry : sorted) html += Row(entry);
  return html +
         "</tbody></table></div>\n<p class=\"faint\">* by the evidence: the mentor has not marked "
         "it.</p>\n</main>\n</body>\n</html>\n";
}

}  // namespace assay
