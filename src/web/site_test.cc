#include "web/site.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "web/hall_testing.h"

namespace assay {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kForm = "application/x-www-form-urlencoded";

class SiteTest : public HallTestBase {};

TEST_F(SiteTest, ForeignHostsAreRefusedUnlessAProxySpeaksTls) {
  EXPECT_EQ(Ask("GET", "/login").status, 200);
  EXPECT_EQ(Ask("GET", "/login", {{"host", "localhost:8080"}}).status, 200);
  for (const std::string host : {"", "evil.example", "127.0.0.1:9", "127.0.0.1:8080\"><b>"}) {
    const ServedReply reply = Ask("GET", "/login", {{"host", host}});
    EXPECT_EQ(reply.status, 403) << host;
  }
  const Headers by_proxy{{"host", "board.example.org"}, {"x-forwarded-proto", "https"}};
  EXPECT_EQ(Ask("GET", "/login", by_proxy).status, 403) << "nobody said that there is a proxy";
  OpenSite({.behind_proxy = true});
  const ServedReply reply = Ask("GET", "/login", by_proxy);
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(HeaderOf(reply, "Strict-Transport-Security"), HasSubstr("max-age"));
  EXPECT_EQ(Ask("GET", "/login", {{"host", "board.example.org"}}).status, 403) << "plain HTTP";
  // A peer that reaches the proxy by plain HTTP once passed for this machine by its Host alone.
  for (const Headers& plain :
       {Headers{{"x-forwarded-proto", "http"}}, Headers{{"x-forwarded-proto", "https, http"}},
        Headers{{"x-forwarded-for", "10.0.0.1"}}})
    EXPECT_EQ(Ask("GET", "/login", plain).status, 403);
  EXPECT_EQ(Ask("GET", "/login").status, 200) << "the server's own runners";
  Headers form = by_proxy;
  form["content-type"] = kForm;
  EXPECT_THAT(HeaderOf(Ask("POST", "/login", form, "token=" + ann_), "Set-Cookie"),
              AllOf(HasSubstr("HttpOnly"), HasSubstr("SameSite=Strict"), HasSubstr("Secure")));
}

TEST_F(SiteTest, EveryReplyHasTheHeadersThatProtect) {
  for (const std::string target :
       {"/login", "/nowhere", "/api/jobs", "/api/nowhere", "/openapi.json", "/%2e%2e/etc"}) {
    const ServedReply reply = Ask("GET", target);
    EXPECT_EQ(HeaderOf(reply, "X-Content-Type-Options"), "nosniff") << target;
    // A form of a page under no-referrer comes with the origin "null", and would be refused.
    EXPECT_EQ(HeaderOf(reply, "Referrer-Policy"), "same-origin") << target;
    EXPECT_THAT(HeaderOf(reply, "Content-Security-Policy"),
                AllOf(HasSubstr("default-src 'none'"), HasSubstr("frame-ancestors 'none'"),
                      Not(HasSubstr("unsafe"))))
        << target;
  }
}

TEST_F(SiteTest, MembersAloneReadUnlessTheServerIsPublic) {
  EXPECT_EQ(Ask("GET", "/").status, 303);
  EXPECT_EQ(HeaderOf(Ask("GET", "/"), "Location"), "/login");
  EXPECT_EQ(Ask("GET", "/api/board").status, 401);
  EXPECT_EQ(AskAs(ann_, "GET", "/api/board").status, 200);
  EXPECT_EQ(AskAs(ann_, "GET", "/").status, 200);
  EXPECT_EQ(AskAs(ann_, "GET", "/api/accounts").status, 403);
  EXPECT_EQ(AskAs(mentor_, "GET", "/api/accounts").status, 200);
  EXPECT_EQ(AskAs("0123456789abcdef0123456789abcdef", "GET", "/api/board").status, 401);
  EXPECT_EQ(Ask("GET", "/api/board", {{"authorization", "Basic eDp5"}}).status, 401);
  OpenSite({.is_public = true});
  EXPECT_EQ(Ask("GET", "/").status, 200);
  EXPECT_EQ(Ask("GET", "/api/jobs").status, 401) << "jobs are for members";
}

TEST_F(SiteTest, WrongAddressesAndMethods) {
  EXPECT_EQ(AskAs(ann_, "GET", "/nowhere").status, 404);
  const ServedReply reply = AskAs(ann_, "PUT", "/api/jobs");
  EXPECT_EQ(reply.status, 405);
  EXPECT_THAT(HeaderOf(reply, "Allow"), AllOf(HasSubstr("GET"), HasSubstr("POST")));
  for (const std::string target :
       {"/jobs/..", "/problems/%2e%2e%2f", "http://x/", "/problems/a%00"})
    EXPECT_EQ(AskAs(ann_, "GET", target).status, 400) << target;
}

TEST_F(SiteTest, BodiesAreRefusedBeforeTheyAreRead) {
  const auto refused = [&](Headers headers) {
    ServedRequest request;
    request.method = "POST";
    request.target = "/api/jobs";
    request.headers = std::move(headers);
    request.headers["host"] = "127.0.0.1:8080";
    const auto refusal = site_->Refuse(request);
    return refusal ? refusal->status : 0;
  };
  EXPECT_EQ(refused({{"content-length", "100"}}), 401) << "nobody";
  EXPECT_EQ(refused({{"authorization", "Bearer x"}, {"content-length", "5000000"}}), 413);
  EXPECT_EQ(refused({{"authorization", "Bearer x"}, {"content-length", "-1"}}), 400);
  EXPECT_EQ(refused({{"authorization", "Bearer x"}, {"transfer-encoding", "chunked"}}), 411);
  EXPECT_EQ(refused({{"authorization", "Bearer x"}, {"content-length", "100"}}), 0);
}

// Every route that changes something, with a session and all but the session's own field.
TEST_F(SiteTest, FormsOfOtherSitesChangeNothing) {
  const std::string cookie = SignIn(mentor_);
  ASSERT_THAT(cookie, HasSubstr("assay_session="));
  const std::string session = cookie.substr(cookie.find('=') + 1);
  int checked = 0;
  for (const Route& route : Routes()) {
    if (route.method == "GET" || route.access == Access::kAnyone) continue;
    std::string target = route.pattern;
    while (target.find('{') != std::string::npos)
      target.replace(target.find('{'), target.find('}') - target.find('{') + 1, "1");
    const Headers headers{{"cookie", cookie}, {"content-type", kForm}};
    EXPECT_EQ(Ask(route.method, target, headers, "a=b").status, 403) << target;
    EXPECT_EQ(Ask(route.method, target, headers, "csrf=" + session).status, 403) << target;
    Headers foreign = headers;
    foreign["origin"] = "https://evil.example";
    EXPECT_EQ(Ask(route.method, target, foreign, "csrf=" + CsrfTokenOf(session)).status, 403)
        << target;
    foreign = headers;
    foreign["sec-fetch-site"] = "cross-site";
    EXPECT_EQ(Ask(route.method, target, foreign, "csrf=" + CsrfTokenOf(session)).status, 403)
        << target;
    ++checked;
  }
  EXPECT_GT(checked, 8);
  EXPECT_EQ(Ask("GET", "/jobs", {{"cookie", cookie}}).status, 200) << "and it is still signed in";
  Headers own{{"cookie", cookie}, {"content-type", kForm}, {"origin", "http://127.0.0.1:8080"}};
  EXPECT_EQ(Ask("POST", "/logout", own, "csrf=" + CsrfTokenOf(session)).status, 303);
  EXPECT_EQ(Ask("GET", "/jobs", {{"cookie", cookie}}).status, 303) << "signed out";
}

TEST_F(SiteTest, OtherSitesCannotSignABrowserIn) {
  const Headers foreign{{"content-type", kForm}, {"origin", "https://evil.example"}};
  const ServedReply reply = Ask("POST", "/login", foreign, "token=" + ann_);
  EXPECT_EQ(reply.status, 403);
  EXPECT_EQ(HeaderOf(reply, "Set-Cookie"), "");
}

TEST_F(SiteTest, AnAccessTokenIsNoCookieAndASessionNoToken) {
  EXPECT_EQ(Ask("GET", "/jobs", {{"cookie", "assay_session=" + ann_}}).status, 303);
  const std::string session = SignIn(ann_).substr(sizeof "assay_session");
  EXPECT_EQ(AskAs(session, "GET", "/api/me").status, 401);
  EXPECT_EQ(Ask("POST", "/login", {{"content-type", kForm}}, "token=nonsense").status, 401);
}

TEST_F(SiteTest, SigningInGoesOnToThePageThatWasAskedFor) {
  EXPECT_EQ(HeaderOf(Ask("GET", "/jobs/7"), "Location"), "/login?next=%2Fjobs%2F7");
  EXPECT_THAT(Ask("GET", "/login?next=%2Fjobs%2F7").body,
              HasSubstr("name=\"next\" value=\"/jobs/7\""));
  const auto next = [&](const std::string& page) {
    return HeaderOf(
        Ask("POST", "/login", {{"content-type", kForm}}, "token=" + ann_ + "&next=" + page),
        "Location");
  };
  EXPECT_EQ(next("%2Fjobs%2F7"), "/jobs/7");
  for (const std::string elsewhere :
       {"", "jobs", "https%3A%2F%2Fevil.example", "%2F%2Fevil.example", "%2F%5Cevil.example",
        "%2Fa%0D%0AX%3A1"})
    EXPECT_EQ(next(elsewhere), "/") << elsewhere;
  EXPECT_THAT(Ask("POST", "/submit", {{"content-type", kForm}}, "a=b").body,
              HasSubstr("your session is over"));
}

TEST_F(SiteTest, ThoseWhoAskTooOftenWait) {
  OpenSite({.account_rate = {1, 3}});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(AskAs(ann_, "GET", "/api/me").status, 200);
  const ServedReply reply = AskAs(ann_, "GET", "/api/me");
  EXPECT_EQ(reply.status, 429);
  EXPECT_NE(HeaderOf(reply, "Retry-After"), "");
  EXPECT_EQ(AskAs(ben_, "GET", "/api/me").status, 200);
  OpenSite({.address_rate = {1, 2}});
  AskAs(ann_, "GET", "/api/me"), AskAs(ann_, "GET", "/api/me");
  EXPECT_EQ(AskAs(ben_, "GET", "/api/me").status, 429);
  OpenSite({.wrong_rate = {0.1, 2}});
  const std::string wrong(32, '0');
  AskAs(wrong, "GET", "/api/me"), AskAs(wrong, "GET", "/api/me");
  EXPECT_EQ(AskAs(wrong, "GET", "/api/me").status, 429);
  EXPECT_EQ(AskAs(ann_, "GET", "/api/me").status, 200);
}

TEST_F(SiteTest, EachPageIsThereForAMember) {
  ASSERT_EQ(AskAs(ann_, "POST", "/api/jobs", Candidate()).status, 202);
  for (const std::string target :
       {"/", "/?p=2&by=machine&tier=1", "/?problem=softmax", "/problems", "/problems/softmax",
        "/jobs", "/jobs/1", "/submit", "/runs", "/ladders", "/machine", "/login"}) {
    const ServedReply reply = AskAs(ann_, "GET", target);
    EXPECT_EQ(reply.status, 200) << target << ": " << reply.body.substr(0, 300);
    EXPECT_THAT(reply.body, HasSubstr("</html>")) << target;
  }
  EXPECT_EQ(AskAs(ann_, "GET", "/?p=nan").status, 400);
  EXPECT_EQ(AskAs(ann_, "GET", "/jobs/99").status, 404);
  EXPECT_EQ(AskAs(ann_, "GET", "/verdicts/abcd").status, 404);
  EXPECT_EQ(AskAs(ann_, "GET", "/problems/none").status, 404);
}

}  // namespace
}  // namespace assay
