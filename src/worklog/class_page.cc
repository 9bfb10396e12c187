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

// The author, or the folder where no author is named or known.
std::string TitleOf(const ClassEntry& entry) {
  return entry.worklog == nullptr || entry.worklog->words.author.empty()
             ? entry.folder
             : entry.worklog->words.author;
}

std::string Items(const std::vector<std::string>& texts) {
  std::string items;
  for (const std::string& text : texts) items += fmt::format("<li>{}</li>\n", HtmlText(text));
  return items;
}

std::string LookedAt(const ClassEntry& entry) {
  std::string html;
  if (!entry.trouble.empty()) html += "not graded: " + HtmlText(entry.trouble);
  if (!entry.alike.empty()) html += "<ul>" + Items(entry.alike) + "</ul>\n";
  if (entry.grade != nullptr && !entry.grade->suspicious.empty()) {
    std::string items = Items(entry.grade->suspicious);
    if (!entry.grade->lift.empty()) items += Items({entry.grade->lift});
    html += FoldedHtml(Counted(static_cast<long long>(entry.grade->suspicious.size()), "thing") +
                           (entry.grade->lifted ? ", lifted" : ""),
                       "<ul>" + items + "</ul>\n", true);
  }
  return html.empty() ? "nothing" : html;
}

std::string Row(const ClassEntry& entry, size_t buckets) {
  std::string html = fmt::format("<tr><th scope=\"row\">{}", HtmlText(TitleOf(entry)));
  if (TitleOf(entry) != entry.folder)
    html += fmt::format("<br><span class=\"faint\">{}</span>", HtmlText(entry.folder));
  html += "</th>";
  html += entry.worklog == nullptr
              ? "<td></td>"
              : fmt::format("<td>{}, tier {}</td>", HtmlText(entry.worklog->words.problem),
                            entry.worklog->words.tier);
  if (entry.grade == nullptr) {
    html += fmt::format("<td colspan=\"{}\">not graded</td>", buckets + 1);
  } else {
    const auto& graded = entry.grade->buckets;
    const bool settled = std::all_of(graded.begin(), graded.end(),
                                     [](const GradedBucket& bucket) { return bucket.Settled(); });
    html += fmt::format("<td class=\"n\"><b>{:g}</b>{} of {:g}</td>", entry.grade->mark,
                        settled ? "" : "*", entry.grade->points);
    for (const GradedBucket& bucket : graded)
      html += fmt::format("<td class=\"n\">{:g}{}</td>", bucket.mark, bucket.Settled() ? "" : "*");
  }
  for (const Player player : {Player::kHand, Player::kModel})
    html += entry.worklog == nullptr
                ? "<td></td>"
                : fmt::format("<td>{}</td>", HtmlText(Best(*entry.worklog, player)));
  return html + fmt::format("<td>{}</td></tr>\n", LookedAt(entry));
}

}  // namespace

std::string RenderClassPage(std::span<const ClassEntry> entries) {
  std::vector<ClassEntry> sorted(entries.begin(), entries.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const ClassEntry& a, const ClassEntry& b) {
    return TitleOf(a) < TitleOf(b);
  });
  std::string html = PageHead("The worklogs of a class", "class");
  html += fmt::format(
      "<h1>The worklogs of a class</h1>\n<p class=\"faint\">{}. By author: speed earns no "
      "points.</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"worklogs\">\n"
      "<table><thead><tr><th scope=\"col\">author</th><th scope=\"col\">problem</th>"
      "<th scope=\"col\" class=\"n\">total</th>",
      Counted(static_cast<long long>(sorted.size()), "worklog"));
  const Grade none;
  const Grade* first = &none;
  for (const ClassEntry& entry : sorted)
    if (entry.grade != nullptr) first = entry.grade;
  for (const GradedBucket& bucket : first->buckets)
    html += fmt::format("<th scope=\"col\" class=\"n\">{}</th>", HtmlText(bucket.key));
  html +=
      "<th scope=\"col\">by hand</th><th scope=\"col\">the model</th>"
      "<th scope=\"col\">to look at</th></tr></thead>\n"
      "<tbody>\n";
  for (const ClassEntry& entry : sorted) html += Row(entry, first->buckets.size());
  return html +
         "</tbody></table></div>\n<p class=\"faint\">* by the evidence: the mentor has not marked "
         "it.</p>\n</main>\n</body>\n</html>\n";
}

}  // namespace assay
