#include "web/entry_pages.h"

#include "report/text.h"
#include "web/parts.h"

namespace assay {
namespace {

Html FaultNotice(const std::string& fault) {
  return fault.empty()
             ? Html()
             : Markup("<div class=\"notice bad\" role=\"alert\"><p>{}</p></div>\n", fault);
}

struct StatusWords {
  std::string_view title, message;
};

StatusWords WordsOf(int status) {
  switch (status) {
    case 400:
      return {"That request makes no sense",
              "A part of it is missing, or is not what it should be."};
    case 401:
      return {"Please sign in", "This page is for accounts of this server."};
    case 403:
      return {"Not for this account", "It needs other rights, or its time is over."};
    case 404:
      return {"There is nothing here", "The address is mistyped, or what it named is gone."};
    case 405:
      return {"Not in this way", "This address does not take that kind of request."};
    case 413:
      return {"Too large", "A source may have 1 MiB."};
    case 429:
      return {"Too much at once", "The queue is full, or your quota is used up."};
    case 503:
      return {"Not now", "The server is busy, or about to end."};
    default:
      return {"Something went wrong", "The fault is the server's. It is in its log."};
  }
}

}  // namespace

std::string RenderLoginPage(const std::string& fault, PageFrame frame, const std::string& next) {
  frame.title = "Sign in";
  frame.narrow = true;
  Html main = Html::Trusted("<h1>Sign in</h1>\n") + FaultNotice(fault);
  main += Markup(
      "<form method=\"post\" action=\"/login\">{}{}<div class=\"field\"><label for=\"token\">your "
      "token</label><input id=\"token\" name=\"token\" type=\"password\" required "
      "autocomplete=\"current-password\" spellcheck=\"false\" "
      "aria-describedby=\"token-help\"><p id=\"token-help\">You saw it when you joined. The "
      "mentor's is in the server's folder.</p></div><p><button class=\"first\">Sign in</button></p>"
      "</form>\n",
      CsrfField(frame.viewer),
      next.empty() ? Html() : Markup("<input type=\"hidden\" name=\"next\" value=\"{}\">", next));
  main += Paragraph("No account? Open the invitation that your mentor gave you.", "faint");
  return RenderPage(frame, main);
}

std::string RenderJoinPage(const JoinView& view, PageFrame frame) {
  frame.title = "Join " + view.class_name;
  frame.narrow = true;
  if (view.is_over) {
    frame.title = "An invitation that is over";
    return RenderPage(
        frame, Html::Trusted("<h1>This invitation is over</h1>\n") +
                   Paragraph("It was used as often as it may be, or its time is up. Ask your "
                             "mentor for another one.",
                             "lead"));
  }
  Html main = Markup("<h1>Join {}</h1>\n", view.class_name) + FaultNotice(view.fault);
  main += Markup(
      "<form method=\"post\" action=\"/join/{}\">{}<div class=\"field\"><label for=\"name\">your "
      "name on the board</label><input id=\"name\" name=\"name\" value=\"{}\" required "
      "maxlength=\"40\" autocomplete=\"nickname\" aria-describedby=\"name-help\"><p "
      "id=\"name-help\">All of the class see it. It cannot be changed.</p></div><p><button "
      "class=\"first\">Join</button></p></form>\n",
      UrlPart(view.code), CsrfField(frame.viewer), view.name);
  return RenderPage(frame, main);
}

std::string RenderWelcomePage(const std::string& name, const std::string& token, PageFrame frame) {
  frame.title = "Welcome";
  frame.narrow = true;
  Html main = Markup("<h1>Welcome, {}</h1>\n", name);
  main +=
      Paragraph("This is your token. It is shown once: keep it where you keep passwords.", "lead");
  main += Markup("<p><code class=\"secret\">{}</code></p>\n", token);
  main += Paragraph("You are signed in on this browser. For commands, put it into a file:");
  main += Command("(umask 077; cat > ~/.assay-token)");
  main += Paragraph("Then submit from a shell:");
  main += Command("assay submit PROBLEM FILE --server URL --token-file ~/.assay-token");
  main += Html::Trusted("<p><a class=\"button first\" href=\"/\">To the board</a></p>\n");
  return RenderPage(frame, main);
}

std::string RenderErrorPage(const ErrorView& view, PageFrame frame) {
  const StatusWords words = WordsOf(view.status);
  frame.title = std::string(words.title);
  frame.narrow = true;
  Html main = Markup("<h1>{}</h1>\n<p class=\"lead\">{}</p>\n", words.title,
                     view.message.empty() ? std::string(words.message) : view.message);
  if (view.retry_after_s > 0)
    main += Markup("<p>Try again in {}.</p>\n", Counted(view.retry_after_s, "second"));
  main += Markup("<p class=\"faint\">Status {}. <a href=\"/\">To the board</a></p>\n", view.status);
  return RenderPage(frame, main);
}

}  // namespace assay
