// A server without sockets: requests in, replies out.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "web/api.h"
#include "web/assets.h"
#include "web/page_routes.h"
#include "web/site.h"

namespace assay {

class HallTestBase : public ::testing::Test {
 protected:
  using Json = nlohmann::ordered_json;
  static constexpr int kPort = 8080;

  void SetUp() override {
    folder_.emplace(TemporaryFolder::Create().value());
    auto catalogue = Catalogue::Load({ASSAY_SOURCE_DIRECTORY "/problems"}, "/nowhere");
    ASSERT_TRUE(catalogue) << catalogue.error().message;
    auto hall = Hall::Open({.folder = folder_->path().string()}, std::move(*catalogue));
    ASSERT_TRUE(hall) << hall.error().message;
    hall_ = std::move(*hall);
    parts_.wake = [this](const std::string& topic) { woken_.push_back(topic); };
    OpenSite({});
    mentor_ = Member("mentor", Role::kMentor);
    ann_ = Member("ann", Role::kStudent);
    ben_ = Member("ben", Role::kStudent);
  }
  std::vector<Route> Routes() {
    std::vector<Route> routes = PageRoutes(parts_);
    for (Route& route : ApiRoutes(parts_.wake)) routes.push_back(std::move(route));
    return routes;
  }
  void OpenSite(SiteOptions options) {
    options.port = kPort;
    options.security_policy = PageSecurityPolicy();
    site_ = std::make_unique<Site>(
        *hall_, Routes(), options,
        [this](int status, const std::string& message, const WebRequest* request) {
          return ErrorPageOf(parts_, status, message, request);
        });
  }
  // A member's token.
  std::string Member(const std::string& name, Role role) {
    Accounts accounts = hall_->accounts();
    const Account account = accounts.Make(name, role, 0, InstantNow()).value();
    return accounts.IssueAccess(account.id, InstantNow()).value();
  }
  using Headers = std::map<std::string, std::string>;
  ServedReply Ask(const std::string& method, const std::string& target, Headers headers = {},
                  const std::string& body = "") {
    ServedRequest request;
    request.method = method;
    request.target = target;
    request.headers = std::move(headers);
    request.headers.try_emplace("host", "127.0.0.1:8080");
    if (!body.empty()) request.headers["content-length"] = std::to_string(body.size());
    request.peer = "127.0.0.1";
    if (auto refusal = site_->Refuse(request)) return *refusal;
    request.body = body;
    ServedReply reply = site_->Answer(request);
    while (reply.wait) reply = reply.wait->ask(true).value();
    return reply;
  }
  ServedReply AskAs(const std::string& token, const std::string& method,
                    const std::string& target) {
    return Ask(method, target, {{"authorization", "Bearer " + token}});
  }
  ServedReply AskAs(const std::string& token, const std::string& method, const std::string& target,
                    const Json& body);
  static Json JsonOf(const ServedReply& reply);
  static std::string HeaderOf(const ServedReply& reply, const std::string& name) {
    for (const auto& [each, value] : reply.headers)
      if (each == name) return value;
    return {};
  }
  static Json Candidate(const std::string& source = "int a;\n");
  // The cookie of a browser that has signed in.
  std::string SignIn(const std::string& token) {
    const ServedReply reply =
        Ask("POST", "/login", {{"content-type", "application/x-www-form-urlencoded"}},
            "token=" + token);
    const std::string cookie = HeaderOf(reply, "Set-Cookie");
    return cookie.substr(0, cookie.find(';'));
  }

  std::optional<TemporaryFolder> folder_;
  std::unique_ptr<Hall> hall_;
  PageParts parts_;
  std::vector<std::string> woken_;
  std::unique_ptr<Site> site_;
  std::string mentor_, ann_, ben_;
};

}  // namespace assay
