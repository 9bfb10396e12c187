#include <algorithm>

#include "web/entry_pages.h"
#include "web/page_routes.h"
#include "web/replies.h"

namespace assay {
namespace {

constexpr size_t kNextBytesMax = 200;

std::string WithoutSpace(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

// A page of this server to go on to, as a link named it; else the board.
std::string NextPage(const std::string& asked) {
  const bool plain = std::ranges::all_of(asked, [](char c) { return c > ' ' && c < 127; });
  const bool here = asked.starts_with('/') && !asked.starts_with("//") && !asked.contains('\\');
  return plain && here && asked.size() <= kNextBytesMax ? asked : "/";
}

ServedReply ShowLogin(const PageParts& parts, Hall&, const WebRequest& request) {
  return HtmlReply(
      RenderLoginPage("", FrameOf(parts, request, Place::kElsewhere), request.Query("next")));
}

ServedReply PostLogin(const PageParts& parts, Hall& hall, const WebRequest& request) {
  Accounts accounts = hall.accounts();
  ASSAY_ASSIGN_OR_PAGE(const auto account,
                       accounts.OfAccess(WithoutSpace(request.Form("token")), request.now));
  if (!account)
    return HtmlReply(
        RenderLoginPage("This token is none, or was revoked. Ask your mentor.",
                        FrameOf(parts, request, Place::kElsewhere), request.Form("next")),
        401);
  ASSAY_ASSIGN_OR_PAGE(const std::string session, accounts.IssueSession(account->id, request.now));
  ServedReply reply = Redirect(NextPage(request.Form("next")));
  reply.headers.push_back(SessionCookie(session, request.is_secure));
  return reply;
}

ServedReply PostLogout(const PageParts& parts, Hall& hall, const WebRequest& request) {
  const auto revoked = hall.accounts().Revoke(request.session);
  if (!revoked) return ErrorPageOf(parts, revoked.error(), request);
  ServedReply reply = Redirect("/login");
  reply.headers.push_back(SessionCookie("", request.is_secure));
  return reply;
}

}  // namespace

void AddLoginPages(const PageParts& parts, std::vector<Route>* routes) {
  const auto with_parts = [&parts](auto handler) {
    return [&parts, handler](Hall& hall, const WebRequest& request) {
      return handler(parts, hall, request);
    };
  };
  routes->push_back({"GET", "/login", Access::kAnyone, with_parts(ShowLogin)});
  routes->push_back({"POST", "/login", Access::kAnyone, with_parts(PostLogin)});
  routes->push_back({"POST", "/logout", Access::kMember, with_parts(PostLogout)});
}

}  // namespace assay
