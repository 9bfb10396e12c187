#include "web/class_pages.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "report/text.h"
#include "serve/words.h"
#include "web/parts.h"

namespace assay {
namespace {

constexpr size_t kAwaitedShown = 5;

Html FaultNotice(const std::string& fault) {
  return fault.empty()
             ? Html()
             : Markup("<div class=\"notice bad\" role=\"alert\"><p>{}</p></div>\n", fault);
}

std::string DurationText(int64_t seconds) {
  constexpr int64_t kMinute_s = 60, kHour_s = 3600;
  return seconds >= 2 * kDay_s      ? Counted(seconds / kDay_s, "day")
         : seconds >= 2 * kHour_s   ? Counted(seconds / kHour_s, "hour")
         : seconds >= 2 * kMinute_s ? Counted(seconds / kMinute_s, "minute")
                                    : Counted(seconds, "second");
}

Html DeadlineText(const Class& of, int64_t now_s) {
  if (of.terms.deadline_s == 0) return Text("none");
  const Html time = TimeText(UtcText(of.terms.deadline_s));
  if (IsOver(of, now_s)) return Markup("{} UTC, <strong>over</strong>", time);
  const int64_t left_s = of.terms.deadline_s - now_s;
  return Markup("{} UTC, in {}", time, DurationText(left_s));
}

Html ClassFacts(const ClassView& view) {
  const Class& of = view.of;
  Html facts = FactRow("deadline", DeadlineText(of, view.now_s));
  facts += FactRow(
      "quota", Markup("{} and {} of an account in 24 hours", Counted(of.terms.jobs_a_day, "job"),
                      Counted(of.terms.worklogs_a_day, "worklog")));
  if (of.terms.deadline_s != 0)
    facts += FactRow("code of others", Text(IsOver(of, view.now_s) ? "shown since the deadline"
                                                                   : "hidden until the deadline"));
  facts += FactRow("rubric", Text(of.terms.rubric.empty() ? "the shipped one" : "of this class"));
  return Facts(facts);
}

Html Members(const ClassView& view) {
  if (view.members.empty()) return Paragraph("Nobody has joined yet.", "faint");
  PageTable table("members", {{"name", "name"}, {"role", ""}, {"jobs", "n"}, {"worklogs", "n"}});
  for (const MemberRow& each : view.members)
    table.Row({Text(each.account.name),
               each.account.role == Role::kMentor ? Markup("<span class=\"tag\">mentor</span>")
                                                  : RoleTag(each.account.role),
               Markup("{}", each.jobs), Markup("{}", each.worklogs)});
  return table.End();
}

Html SpeedCell(double value, double low, double high) {
  if (value <= 0) return Text("-");
  return Markup("{} <span class=\"faint\">{}</span>", RatioOrDash(value), RangeText(low, high));
}

Html FinalCell(const FinalistRow& row) {
  if (!IsTerminal(row.final.state))
    return Markup("<a href=\"/jobs/{}\">{}</a>", row.final.id, JobStateName(row.final.state));
  if (row.final.verdict.empty()) return Markup("<a href=\"/jobs/{}\">no verdict</a>", row.final.id);
  return SpeedCell(row.final_speedup, row.final_low, row.final_high) + Text(" ") +
         VerdictLink(row.final.verdict, "verdict") +
         (row.final_differs
              ? Markup(" <a class=\"tag own\" href=\"/verdicts/{}\">a spot check disagrees</a>",
                       row.final.verdict)
              : Html());
}

// Says whose finals are not asked for yet.
Html AwaitedNotice(const ClassView& view) {
  if (view.awaited.empty() || !IsOver(view.of, view.now_s)) return {};
  const size_t shown = std::min(view.awaited.size(), kAwaitedShown);
  std::string names = fmt::format("{}", fmt::join(std::span(view.awaited).first(shown), ", "));
  if (view.awaited.size() > shown) names += fmt::format(", {} more", view.awaited.size() - shown);
  return Markup(
      "<p>The finals of {} wait until their <a href=\"/jobs\">jobs</a> have ended. A mentor may "
      "cancel a job that no runner takes.</p>\n",
      names);
}

Html AskAgainForm(const ClassView& view, const PageFrame& frame) {
  const auto failed = std::ranges::count_if(
      view.finals, [](const FinalistRow& row) { return row.final.state == JobState::kFailed; });
  if (!view.manages || failed == 0) return {};
  return Markup(
      "<form method=\"post\" action=\"/classes/{}/finals\">{}<p><button>Ask again for {}</button> "
      "that no runner could judge.</p></form>\n",
      view.of.id, CsrfField(frame.viewer), Counted(failed, "final"));
}

Html FinalsPart(const ClassView& view, const PageFrame& frame) {
  const Class& of = view.of;
  if (of.terms.deadline_s == 0) return {};
  Html part = Heading("Finals");
  if (!IsOver(of, view.now_s))
    return part + Paragraph(
                      "At the deadline, each member's best candidate of each problem is judged "
                      "once more, on fresh seeds. The final counts.",
                      "faint");
  part += AwaitedNotice(view);
  if (view.finals.empty() && !view.awaited.empty()) return part;
  if (view.finals.empty())
    return part + Paragraph(of.finals_s == 0 ? "They begin in a moment."
                                             : "No candidate was correct before the deadline.",
                            "faint");
  PageTable table("finals", {{"problem", "name"},
                             {"size", ""},
                             {"by", ""},
                             {"best before the deadline", ""},
                             {"final", ""}});
  for (const FinalistRow& row : view.finals)
    table.Row({ProblemLink(row.best.problem), Text(row.best.size),
               Markup("{} {}", row.account.name, RoleTag(row.account.role)),
               SpeedCell(row.best_speedup, row.best_low, row.best_high), FinalCell(row)});
  return part + table.End() + AskAgainForm(view, frame);
}

// A deadline that has passed stays, so that there is nothing to change then.
Html DeadlineForms(const ClassView& view, const PageFrame& frame) {
  const Class& of = view.of;
  if (IsOver(of, view.now_s)) return {};
  Html part = Heading("Deadline");
  part += Markup(
      "<form class=\"filters\" method=\"post\" action=\"/classes/{}/deadline\">{}<div><label "
      "for=\"deadline\">deadline, with its zone</label><input id=\"deadline\" name=\"deadline\" "
      "value=\"{}\" placeholder=\"2026-12-18T18:00+01:00\" size=\"26\" required></div><button>{}"
      "</button></form>\n",
      of.id, CsrfField(frame.viewer),
      of.terms.deadline_s == 0 ? std::string() : UtcText(of.terms.deadline_s),
      of.terms.deadline_s == 0 ? "Set it" : "Move it");
  part += Fold(
      "Close the class now",
      Markup("<form method=\"post\" action=\"/classes/{}/close\">{}<p>Jobs and worklogs that come "
             "later are refused, members see each other's code, and the finals begin. It cannot be "
             "undone.</p><p><label><input type=\"checkbox\" name=\"sure\" value=\"yes\" required> "
             "I am sure</label></p><p><button class=\"danger\">Close it now</button></p></form>\n",
             of.id, CsrfField(frame.viewer)));
  return part;
}

std::string_view InvitationState(const Invitation& each, int64_t now_s) {
  return each.revoked                 ? "taken back"
         : now_s >= each.ends_s       ? "over"
         : each.used >= each.uses_max ? "used up"
                                      : "open";
}

Html InvitationForm(const ClassView& view, const PageFrame& frame) {
  return Markup(
      "<form class=\"filters\" method=\"post\" action=\"/classes/{}/invitations\">{}"
      "<div><label for=\"role\">for a</label><select id=\"role\" name=\"role\"><option "
      "value=\"student\">student</option><option value=\"machine\">model</option><option "
      "value=\"mentor\">mentor</option></select></div>"
      "<div><label for=\"uses\">uses</label><input id=\"uses\" name=\"uses\" type=\"number\" "
      "min=\"1\" max=\"{}\" value=\"1\" required></div>"
      "<div><label for=\"lasts\">lasts, such as 7d or 12h</label><input id=\"lasts\" "
      "name=\"lasts\" value=\"30d\" size=\"6\" required></div>"
      "<div><label for=\"for\">or for a member who lost the token</label><input id=\"for\" "
      "name=\"for\" maxlength=\"40\"></div>"
      "<button class=\"first\">Make an invitation</button></form>\n",
      view.of.id, CsrfField(frame.viewer), kInvitationUsesMax);
}

Html InvitationsPart(const ClassView& view, const PageFrame& frame) {
  Html part = Heading("Invitations");
  if (!view.new_link.empty())
    part += Markup(
        "<div class=\"notice\" role=\"status\"><p>The link, which is shown once:</p>"
        "<p><code class=\"secret\">{}</code></p></div>\n",
        view.new_link);
  part += InvitationForm(view, frame);
  if (view.invitations.empty()) return part;
  PageTable table("invitations", {{"number", "n"},
                                  {"role", ""},
                                  {"used", "n"},
                                  {"made (UTC)", ""},
                                  {"ends (UTC)", ""},
                                  {"state", ""},
                                  {"", ""}});
  for (const Invitation& each : view.invitations) {
    const bool open = !RefuseInvitation(each, view.now_s).has_value();
    table.Row({Markup("{}", each.id), Text(RoleName(each.role)),
               Markup("{} of {}", each.used, each.uses_max), TimeText(UtcText(each.made_s)),
               TimeText(UtcText(each.ends_s)), Text(InvitationState(each, view.now_s)),
               open ? Markup("<form method=\"post\" action=\"/classes/{}/invitations/{}/end\">{}"
                             "<button class=\"plain\">take back<span class=\"hidden-text\"> "
                             "invitation {}</span></button></form>",
                             view.of.id, each.id, CsrfField(frame.viewer), each.id)
                    : Html()});
  }
  return part + table.End();
}

Html MentorLinks(const Class& of) {
  return Markup(
      "<p><a class=\"button first\" href=\"/classes/{0}/sheet\">Grading sheet</a> <a "
      "class=\"button\" href=\"/api/classes/{0}/sheet.csv\">as CSV</a> <a class=\"button\" "
      "href=\"/api/classes/{0}/export\">Export the class</a></p>\n",
      of.id);
}

}  // namespace

std::string RenderClassList(const ClassListView& view, PageFrame frame) {
  frame.title = "Classes";
  frame.place = Place::kClasses;
  Html main = Html::Trusted("<h1>Classes</h1>\n") + FaultNotice(view.fault);
  if (view.classes.empty()) {
    main += Paragraph("You are in no class. A mentor gives you an invitation.", "lead");
  } else {
    PageTable table("classes", {{"class", "name"}, {"deadline", ""}, {"made (UTC)", ""}});
    for (const Class& each : view.classes)
      table.Row({Markup("<a href=\"/classes/{}\">{}</a>", each.id, each.terms.name),
                 DeadlineText(each, view.now_s), TimeText(UtcText(each.made_s))});
    main += table.End();
  }
  if (!view.may_make) return RenderPage(frame, main);
  main += Heading("A new class");
  main += Markup(
      "<form method=\"post\" action=\"/classes\">{}<div class=\"field\"><label "
      "for=\"name\">name</label><input id=\"name\" name=\"name\" maxlength=\"100\" required></div>"
      "<div class=\"field\"><label for=\"deadline\">deadline</label><input id=\"deadline\" "
      "name=\"deadline\" aria-describedby=\"deadline-help\"><p id=\"deadline-help\">With its zone: "
      "2026-12-18T18:00+01:00. Empty: none.</p></div><div class=\"field\"><label "
      "for=\"jobs\">jobs of an account in 24 hours</label><input id=\"jobs\" name=\"jobs_a_day\" "
      "type=\"number\" min=\"1\" value=\"100\" required></div><p><button class=\"first\">Make the "
      "class</button></p></form>\n",
      CsrfField(frame.viewer));
  return RenderPage(frame, main);
}

std::string RenderClassOverview(const ClassView& view, PageFrame frame) {
  frame.title = view.of.terms.name;
  frame.place = Place::kClasses;
  Html main = Markup("<h1>{}</h1>\n<p class=\"lead\">{}</p>\n", view.of.terms.name,
                     Counted(static_cast<long long>(view.members.size()), "member"));
  main += FaultNotice(view.fault);
  if (view.manages) main += MentorLinks(view.of);
  main += ClassFacts(view);
  main += Markup("<p><a href=\"/worklogs?class={}\">Worklogs of the class</a></p>\n", view.of.id);
  main += FinalsPart(view, frame);
  main += Heading("Members") + Members(view);
  if (view.manages)
    main += Markup("<div class=\"screen\">\n{}{}</div>\n", InvitationsPart(view, frame),
                   DeadlineForms(view, frame));
  main += Markup("<p class=\"screen\"><a href=\"/api/classes/{}\">The class as JSON</a></p>\n",
                 view.of.id);
  return RenderPage(frame, main);
}

}  // namespace assay
