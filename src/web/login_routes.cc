#include "web/entry_pages.h"
#include "web/page_routes.h"
#include "web/replies.h"

namespace assay {
namespace {

std::string WithoutSpace(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

ServedReply ShowLogin(const PageParts& parts, Hall&, const WebRequest& request) {
  return HtmlReply(RenderLoginPage("", FrameOf(parts, request, Place::kElsewhere)));
}

ServedReply PostLogin(const PageParts& parts, Hall& hall, const WebRequest& request) {
  Accounts accounts = hall.accounts();
  ASSAY_ASSIGN_OR_PAGE(const auto account,
                       accounts.OfAccess(WithoutSpace(request.Form("token")), request.now));
  if (!account)
    return HtmlReply(RenderLoginPage("This token is none, or was revoked. Ask your mentor.",
                                     FrameOf(parts, request, Place::kElsewhere)),
                     401);
  ASSAY_ASSIGN_OR_PAGE(const std::string session, accounts.IssueSession(account->id, request.now));
  ServedReply reply = Redirect("/");
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
