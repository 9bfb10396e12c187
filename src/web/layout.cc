#include "web/layout.h"

#include <array>

#include "base/version.h"
#include "web/assets.h"

namespace assay {
namespace {

struct Target {
  Place place;
  std::string_view path, name;
};
constexpr std::array<Target, 8> kTargets{{{Place::kBoard, "/", "Board"},
                                          {Place::kProblems, "/problems", "Problems"},
                                          {Place::kLadders, "/ladders", "Ladders"},
                                          {Place::kRuns, "/runs", "Runs"},
                                          {Place::kJobs, "/jobs", "Jobs"},
                                          {Place::kClasses, "/classes", "Classes"},
                                          {Place::kWorklogs, "/worklogs", "Worklogs"},
                                          {Place::kMachine, "/machine", "Machine"}}};

// An interval with its median beside the line at 1: the sign of Assay.
constexpr std::string_view kSign =
    "<svg viewBox=\"0 0 30 16\" aria-hidden=\"true\"><path class=\"c-axis\" "
    "d=\"M4 1v14\"/><path class=\"c-first-line\" d=\"M9 8h19M9 4v8M28 4v8\"/>"
    "<circle class=\"c-bar\" cx=\"18.5\" cy=\"8\" r=\"4\"/></svg>";
constexpr std::string_view kIcon =
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Cpath "
    "d='M4 16h24M4 9v14M28 9v14' stroke='%2314548c' stroke-width='4' fill='none'/%3E%3Ccircle "
    "cx='16' cy='16' r='6' fill='%2314548c'/%3E%3C/svg%3E";

Html Navigation(Place place) {
  Html items;
  for (const Target& target : kTargets)
    items +=
        Markup("<li><a href=\"{}\"{}>{}</a></li>\n", target.path,
               Html::Trusted(target.place == place ? " aria-current=\"page\"" : ""), target.name);
  return Markup("<nav aria-label=\"Main\"><ul>\n{}</ul></nav>\n", items);
}

Html Who(const Viewer& viewer) {
  Html html = Markup("<a class=\"button first\" href=\"/submit\">Submit</a>\n");
  if (!viewer.account)
    html += Markup("<a href=\"/login\">Sign in</a>\n");
  else
    html += Markup(
        "<span>{}{}</span>\n<form method=\"post\" action=\"/logout\">{}"
        "<button class=\"plain\">Sign out</button></form>\n",
        viewer.account->name,
        viewer.IsMentor() && viewer.account->name != "mentor" ? ", mentor" : "", CsrfField(viewer));
  return Markup("<div class=\"who\">{}</div>\n", html);
}

}  // namespace

Html CsrfField(const Viewer& viewer) {
  return Markup("<input type=\"hidden\" name=\"csrf\" value=\"{}\">", viewer.csrf);
}

std::string RenderPage(const PageFrame& frame, const Html& main) {
  Html head = Markup(
      "<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<title>{} · Assay</title>\n<link rel=\"icon\" href=\"{}\">\n",
      frame.title, Html::Trusted(std::string(kIcon)));
  if (frame.reload_s > 0)
    head += Markup("<noscript><meta http-equiv=\"refresh\" content=\"{}\"></noscript>\n",
                   frame.reload_s);
  Html notices;
  if (frame.example)
    notices += Markup(
        "<div class=\"notice\"><p><strong>Examples.</strong> This server shows verdicts that were "
        "measured earlier, on the machines that they name, under names that are examples, too.</p>"
        "</div>\n");
  if (!frame.notice.empty())
    notices += Markup("<div class=\"notice\" role=\"status\"><p>{}</p></div>\n", frame.notice);
  return Markup(
             "<!doctype html>\n<html lang=\"en\">\n<head>\n{}<style>{}</style>\n</head>\n<body>\n"
             "<a class=\"skip\" href=\"#main\">To the content</a>\n"
             "<header class=\"top\"><div>\n<a class=\"brand\" href=\"/\">{}Assay</a>\n{}{}</div>"
             "</header>\n<main id=\"main\"{}>\n{}{}</main>\n"
             "<footer class=\"foot\"><div><span>Assay {}</span><a href=\"/openapi.json\">API</a>"
             "<span>Ranks rest on intervals: what they do not tell apart shares a "
             "rank.</span></div></footer>\n<script>{}</script>\n</body>\n</html>\n",
             head, Html::Trusted(std::string(PageStyleText())), Html::Trusted(std::string(kSign)),
             Navigation(frame.place), Who(frame.viewer),
             Html::Trusted(frame.narrow ? " class=\"narrow-page\"" : ""), notices, main,
             kAssayVersion, Html::Trusted(std::string(PageScriptText())))
      .text();
}

}  // namespace assay
