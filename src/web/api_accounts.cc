#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "serve/words.h"
#include "web/api.h"
#include "web/replies.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

Json AccountJson(const Account& account) {
  return {{"id", account.id},
          {"name", account.name},
          {"role", RoleName(account.role)},
          {"class", account.class_id == 0 ? Json() : Json(account.class_id)}};
}

ServedReply GetMe(Hall&, const WebRequest& request) {
  return JsonReply({{"account", AccountJson(*request.account)}});
}

ServedReply ListAccounts(Hall& hall, const WebRequest&) {
  ASSAY_ASSIGN_OR_REPLY(const std::vector<Account> accounts, hall.accounts().All());
  Json list = Json::array();
  for (const Account& account : accounts) list.push_back(AccountJson(account));
  return JsonReply({{"accounts", list}});
}

// A new account with its token, which is told this once.
ServedReply PostAccount(Hall& hall, const WebRequest& request) {
  ASSAY_ASSIGN_OR_REPLY(const Json json, ReadJsonObject(request.http.body));
  ASSAY_ASSIGN_OR_REPLY(const std::string name, TextField(json, "name", true));
  ASSAY_ASSIGN_OR_REPLY(const std::string role_name, TextField(json, "role", false));
  const auto role = RoleFromName(role_name.empty() ? "student" : role_name);
  if (!role) return ErrorReply(400, "role must be mentor, student or machine");
  Accounts accounts = hall.accounts();
  Account account;
  std::string token;
  const auto made = hall.database().Write([&]() -> Result<void> {
    ASSAY_ASSIGN_OR_RETURN(account, accounts.Make(name, *role, 0, request.now));
    ASSAY_ASSIGN_OR_RETURN(token, accounts.IssueAccess(account.id, request.now));
    return {};
  });
  if (!made) return ErrorReply(made.error());
  return JsonReply({{"account", AccountJson(account)}, {"token", token}}, 201);
}

// One more token of one's own, for a runner, say.
ServedReply PostToken(Hall& hall, const WebRequest& request) {
  ASSAY_ASSIGN_OR_REPLY(const std::string token,
                        hall.accounts().IssueAccess(request.account->id, request.now));
  return JsonReply({{"token", token}}, 201);
}

// All tokens and sessions of one's own, after one was lost; the reply has a new one.
ServedReply DeleteTokens(Hall& hall, const WebRequest& request) {
  Accounts accounts = hall.accounts();
  std::string token;
  const auto done = hall.database().Write([&]() -> Result<void> {
    ASSAY_RETURN_IF_ERROR(accounts.RevokeAll(request.account->id));
    ASSAY_ASSIGN_OR_RETURN(token, accounts.IssueAccess(request.account->id, request.now));
    return {};
  });
  if (!done) return ErrorReply(done.error());
  return JsonReply({{"token", token}});
}

ServedReply GetOpenApi(Hall&, const WebRequest&) { return {200, std::string(OpenApiText())}; }

}  // namespace

void AddAccountRoutes(std::vector<Route>* routes) {
  routes->push_back({"GET", "/api/me", Access::kMember, GetMe});
  routes->push_back({"GET", "/api/accounts", Access::kServerMentor, ListAccounts});
  routes->push_back({"POST", "/api/accounts", Access::kServerMentor, PostAccount});
  routes->push_back({"POST", "/api/me/tokens", Access::kMember, PostToken});
  routes->push_back({"DELETE", "/api/me/tokens", Access::kMember, DeleteTokens});
  routes->push_back({"GET", "/openapi.json", Access::kAnyone, GetOpenApi});
}

std::vector<Route> ApiRoutes(const WakeFunction& wake) {
  std::vector<Route> routes;
  AddJobRoutes(wake, &routes);
  AddRunnerRoutes(wake, &routes);
  AddReadingRoutes(&routes);
  AddAccountRoutes(&routes);
  return routes;
}

}  // namespace assay
