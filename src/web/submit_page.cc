#include "web/submit_page.h"

#include <set>

#include "report/text.h"
#include "web/parts.h"

namespace assay {
namespace {

std::string Words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// Sizes that no runner takes, as the choice has it where scripts run.
Html TooLarge(const SubmitView& view) {
  std::string text;
  for (const SubmitChoice& choice : view.problems)
    if (!choice.too_large.empty())
      text +=
          fmt::format("{}{} {}", text.empty() ? "" : "; ", choice.problem, Words(choice.too_large));
  if (text.empty()) return {};
  return Markup("<p class=\"faint small\">Fits no runner that is here: {}.</p>\n", text);
}

Html ProblemChoice(const SubmitView& view) {
  Html options;
  for (const SubmitChoice& choice : view.problems) {
    options +=
        Markup("<option data-sizes=\"{}\" data-too-large=\"{}\"{}>{}</option>\n",
               Words(choice.sizes), Words(choice.too_large),
               Html::Trusted(choice.problem == view.problem ? " selected" : ""), choice.problem);
  }
  return Markup(
      "<div><label for=\"problem\">problem</label><select id=\"problem\" "
      "name=\"problem\" required>\n{}</select></div>\n",
      options);
}

Html SizeChoice(const SubmitView& view) {
  std::set<std::string> sizes;
  for (const SubmitChoice& choice : view.problems)
    sizes.insert(choice.sizes.begin(), choice.sizes.end());
  Html options = Html::Trusted("<option value=\"\">the file's own</option>\n");
  for (const std::string& size : sizes)
    options += Markup("<option value=\"{0}\"{1}>{0}</option>\n", size,
                      Html::Trusted(size == view.size ? " selected" : ""));
  return Markup(
      "<div><label for=\"size\">size</label><select id=\"size\" name=\"size\">\n{}"
      "</select></div>\n",
      options);
}

std::string LimitsText(const SubmitView& view) {
  std::string text = fmt::format("{} in the queue.", Counted(view.queued, "job"));
  if (view.left_today >= 0)
    text += fmt::format(" {} left today.", Counted(view.left_today, "submission"));
  return text;
}

}  // namespace

std::string RenderSubmitPage(const SubmitView& view, PageFrame frame) {
  frame.title = "Submit a candidate";
  Html main = Html::Trusted("<h1>Submit a candidate</h1>\n");
  if (!frame.viewer.account)
    return RenderPage(
        frame, main + Html::Trusted("<p class=\"lead\">To submit, <a "
                                    "href=\"/login?next=/submit\">sign in</a> with your token, or "
                                    "follow your invitation.</p>\n"));
  main += Markup(
      "<p class=\"lead\">{}{}</p>\n", LimitsText(view),
      view.deadline.empty() ? Html() : Markup(" Deadline: {} UTC.", TimeText(view.deadline)));
  if (!view.over.empty())
    return RenderPage(frame, main + Markup("<div class=\"notice\"><p>{}</p></div>\n", view.over));
  if (!view.fault.empty())
    main += Markup("<div class=\"notice bad\" role=\"alert\"><p>{}</p></div>\n", view.fault);
  Html form = CsrfField(frame.viewer);
  form += Markup(
      "<div class=\"filters\">{}{}<div><label for=\"name\">file name</label><input "
      "id=\"name\" name=\"name\" value=\"{}\" required maxlength=\"100\" "
      "placeholder=\"mine.cpp\" aria-describedby=\"name-help\"></div><div><label "
      "for=\"against\">against verdict (optional)</label><input id=\"against\" "
      "name=\"against\" value=\"{}\" pattern=\"[0-9a-f]{{12}}\" "
      "placeholder=\"12 digits\"></div></div>\n",
      ProblemChoice(view), SizeChoice(view), view.name, view.against);
  form += Html::Trusted(
      "<p class=\"faint small\" id=\"name-help\">The ending says the form: <code>.cpp</code> or "
      "<code>.c</code> C++ or C, <code>.cu</code> CUDA, <code>.py</code> Python with Triton or "
      "PyTorch.</p>\n");
  form += TooLarge(view);
  // The line break after the tag is not part of the text.
  form += Markup(
      "<div class=\"field wide\"><label for=\"source\">source</label><textarea "
      "id=\"source\" name=\"source\" spellcheck=\"false\" autocapitalize=\"off\" "
      "autocomplete=\"off\">\n{}</textarea></div>\n",
      view.source);
  form += Markup(
      "<div class=\"field\"><label for=\"file\">or a file</label><input type=\"file\" "
      "id=\"file\" name=\"file\" accept=\".c,.cc,.cpp,.cu,.py\"><p>Up to {} KiB.</p></div>\n",
      view.source_bytes_max >> 10);
  form += Html::Trusted("<p><button class=\"first\">Submit</button></p>\n");
  main += Markup(
      "<form method=\"post\" action=\"/submit\" enctype=\"multipart/form-data\">\n{}"
      "</form>\n",
      form);
  main += Paragraph("The same from a shell:", "faint");
  main += Command(fmt::format("assay submit {} {} --server URL --token-file FILE",
                              view.problem.empty() ? "PROBLEM" : ShellQuoted(view.problem),
                              view.name.empty() ? "FILE" : ShellQuoted(view.name)));
  return RenderPage(frame, main);
}

}  // namespace assay
