// Classes over the site's door: programs and browsers, from the invitation to the certificate.
#include "web/class_site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "serve/class_testing.h"
#include "web/assets.h"
#include "web/site.h"

namespace assay {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

constexpr const char* kHost = "127.0.0.1:8080";

class ClassSiteTest : public testing::Test {
 protected:
  ClassSiteTest()
      : folder_(TemporaryFolder::Create().value()),
        desk_{Tars(), ASSAY_BUILD_DIRECTORY "/lib/assay/certificate.so"} {
    hall_ = Hall::Open({.folder = folder_.path().string() + "/hall"}, Catalogue()).value();
    UseRulesOfClasses(*hall_);
    std::vector<Route> routes = ClassApiRoutes(desk_);
    const auto frame = [](const WebRequest& request) {
      PageFrame made;
      made.viewer = {request.account, request.csrf};
      return made;
    };
    for (Route& route : ClassPageRoutes(desk_, frame)) routes.push_back(std::move(route));
    SiteOptions options;
    options.port = 8080;
    options.security_policy = PageSecurityPolicy();
    site_ = std::make_unique<Site>(*hall_, std::move(routes), options,
                                   [](int status, const std::string& why, const WebRequest*) {
                                     return ServedReply{status, why, "text/plain"};
                                   });
    Accounts accounts = hall_->accounts();
    const Account mentor = accounts.Make("M. Entor", Role::kMentor, 0, InstantNow()).value();
    mentor_ = accounts.IssueAccess(mentor.id, InstantNow()).value();
  }

  ServedReply Ask(const std::string& method, const std::string& target, const std::string& token,
                  std::string body = "") {
    ServedRequest request{method, target, {{"host", kHost}}, std::move(body), "127.0.0.1"};
    request.headers["content-length"] = std::to_string(request.body.size());
    if (!token.empty()) request.headers["authorization"] = "Bearer " + token;
    if (auto refusal = site_->Refuse(request)) return *refusal;
    return site_->Answer(request);
  }
  Json Good(const std::string& method, const std::string& target, const std::string& token,
            const std::string& body = "", int status = 200) {
    const ServedReply reply = Ask(method, target, token, body);
    EXPECT_EQ(reply.status, status) << method << " " << target << ": " << reply.body;
    return Json::parse(reply.body, nullptr, false);
  }
  int64_t MakeClass(const std::string& more = "") {
    return Good("POST", "/api/classes", mentor_, R"({"name":"kernels")" + more + "}",
                201)["class"]["id"];
  }
  std::string Joined(int64_t id, const std::string& name, const std::string& role = "student") {
    const Json invited = Good("POST", "/api/classes/" + std::to_string(id) + "/invitations",
                              mentor_, R"({"role":")" + role + "\"}", 201);
    const Json joined =
        Good("POST", "/api/join", "", Json{{"code", invited["code"]}, {"name", name}}.dump(), 201);
    return joined["token"];
  }
  // A browser's request with a session.
  ServedReply Browse(const std::string& method, const std::string& target,
                     const std::string& session, const std::string& form = "") {
    ServedRequest request{method, target, {{"host", kHost}}, form, "127.0.0.1"};
    request.headers["content-length"] = std::to_string(form.size());
    request.headers["cookie"] = std::string(kSessionCookie) + "=" + session;
    if (method == "POST") request.headers["content-type"] = "application/x-www-form-urlencoded";
    if (auto refusal = site_->Refuse(request)) return *refusal;
    return site_->Answer(request);
  }
  std::string SessionOf(const std::string& name) {
    const auto account = hall_->accounts().FindByName(name).value();
    return hall_->accounts().IssueSession(account->id, InstantNow()).value();
  }
  static std::string Packed(MatchBuilder builder) {
    return Tars().Write(FilesOf(builder), TarForm::kGzip).value();
  }

  TemporaryFolder folder_;
  ClassDesk desk_;
  std::unique_ptr<Hall> hall_;
  std::unique_ptr<Site> site_;
  std::string mentor_;
};

TEST_F(ClassSiteTest, AClassFromItsInvitationToTheSheet) {
  const int64_t id = MakeClass(R"(,"deadline":"2099-12-01T18:00+01:00","jobs_a_day":7)");
  const std::string path = "/api/classes/" + std::to_string(id);
  const std::string ada = Joined(id, "ada"), bob = Joined(id, "bob");
  const Json shown = Good("GET", path, ada);
  EXPECT_EQ(shown["class"]["deadline"], "2099-12-01T17:00:00Z");
  EXPECT_EQ(shown["members"].size(), 2U);
  EXPECT_FALSE(shown.contains("invitations"));
  EXPECT_EQ(Good("GET", path, mentor_)["invitations"].size(), 2U);

  const Json sent = Good("POST", "/api/worklogs", ada, Packed(LostMatch()), 201);
  const std::string worklog = "/api/worklogs/" + sent["worklog"]["id"].dump();
  EXPECT_EQ(Ask("GET", worklog, bob).status, 403);
  EXPECT_EQ(Good("GET", "/api/worklogs", bob)["worklogs"].size(), 0U);
  EXPECT_EQ(Ask("POST", worklog + "/grade", ada, R"({"revision":0})").status, 403);
  const Json graded = Good("POST", worklog + "/grade", mentor_,
                           R"({"revision":0,"points":{"depth":25},"note":"good"})");
  EXPECT_EQ(graded["grade"]["mentor"], "M. Entor");
  EXPECT_EQ(Ask("POST", worklog + "/grade", mentor_, R"({"revision":0})").status, 409);
  EXPECT_EQ(Good("GET", worklog, ada)["grade"]["note"], "good");
  EXPECT_THAT(Ask("GET", path + "/sheet.csv", mentor_).body, HasSubstr("\nada,student,1,"));
  EXPECT_EQ(Ask("GET", path + "/sheet.csv", ada).status, 403);
  EXPECT_EQ(Ask("GET", path + "/export", ada).status, 403);
  EXPECT_EQ(Ask("GET", path + "/export", mentor_).content_type, "application/gzip");
}

TEST_F(ClassSiteTest, ACertificateIsForAWholeWorklog) {
  const std::string ada = Joined(MakeClass(), "ada");
  const Json sent = Good("POST", "/api/worklogs", ada, Packed(LostMatch()), 201);
  const ServedReply pdf =
      Ask("GET", "/api/worklogs/" + sent["worklog"]["id"].dump() + "/certificate.pdf", ada);
  const bool complete =
      Good("GET", "/api/worklogs/" + sent["worklog"]["id"].dump(), ada)["complete"];
  EXPECT_EQ(pdf.status, complete ? 200 : 409) << pdf.body.substr(0, 200);
  if (complete) {
    EXPECT_TRUE(pdf.body.starts_with("%PDF-"));
  }
}

TEST_F(ClassSiteTest, StrangersSeeNothing) {
  const int64_t id = MakeClass();
  const std::string other = Joined(MakeClass(), "eve", "mentor");
  const std::string ada = Joined(id, "ada");
  const Json sent = Good("POST", "/api/worklogs", ada, Packed(LostMatch()), 201);
  const std::string worklog = "/api/worklogs/" + sent["worklog"]["id"].dump();
  const std::string path = "/api/classes/" + std::to_string(id);
  for (const std::string& target :
       {path, path + "/export", path + "/sheet.csv", worklog, worklog + "/tar",
        worklog + "/certificate.pdf", std::string("/api/classes/999"),
        std::string("/api/worklogs/999"), std::string("/api/classes/x")}) {
    EXPECT_EQ(Ask("GET", target, other).status, 404) << target;
    EXPECT_EQ(Ask("GET", target, "").status, 401) << target;
  }
  EXPECT_EQ(Ask("POST", path + "/invitations", other, "{}").status, 404);
  EXPECT_EQ(Ask("POST", worklog + "/grade", other, R"({"revision":0})").status, 404);
  // A mentor of one class neither makes nor imports others.
  EXPECT_EQ(Ask("POST", "/api/classes", other, R"({"name":"x"})").status, 403);
  EXPECT_EQ(Ask("POST", "/api/classes/import", other, "").status, 403);
  EXPECT_EQ(Ask("POST", "/api/join", "", R"({"code":"0","name":"x"})").status, 404);
}

TEST_F(ClassSiteTest, BodiesThatMakeNoSenseAreRefused) {
  const std::string path = "/api/classes/" + std::to_string(MakeClass());
  for (const char* body :
       {"", "[]", "{", R"({"name":7})", R"({"name":""})", R"({"name":"a","deadline":"tomorrow"})",
        R"({"name":"a","deadline":"2020-01-01T00:00Z"})", R"({"name":"a","jobs_a_day":0})",
        R"({"name":"a","jobs_a_day":1.5})", R"({"name":"a","rubric":"x"})"})
    EXPECT_EQ(Ask("POST", "/api/classes", mentor_, body).status, 400) << body;
  for (const char* body :
       {R"({"role":"king"})", R"({"uses":0})", R"({"lasts":"soon"})", R"({"uses":"1"})"})
    EXPECT_EQ(Ask("POST", path + "/invitations", mentor_, body).status, 400) << body;
  const std::string ada = Joined(MakeClass(), "ada");
  EXPECT_EQ(Ask("POST", "/api/worklogs", ada, "not a tar").status, 400);
  const std::vector<TarFile> other = {{"a.txt", "x"}};
  EXPECT_EQ(Ask("POST", "/api/worklogs", ada, *Tars().Write(other, TarForm::kPlain)).status, 400);
}

TEST_F(ClassSiteTest, ABrowserJoinsSendsAndReads) {
  const int64_t id = MakeClass();
  const Json invited =
      Good("POST", "/api/classes/" + std::to_string(id) + "/invitations", mentor_, "{}", 201);
  const std::string code = invited["code"];
  EXPECT_THAT(invited["link"].get<std::string>(), testing::EndsWith("/join/" + code));
  EXPECT_THAT(Browse("GET", "/join/" + code, "").body, HasSubstr("Join kernels"));
  const ServedReply welcome = Browse("POST", "/join/" + code, "", "name=%3Cb%3Eada");
  EXPECT_EQ(welcome.status, 200);
  EXPECT_THAT(welcome.body, HasSubstr("&lt;b&gt;ada"));
  EXPECT_THAT(welcome.body, Not(HasSubstr("<b>ada")));
  EXPECT_EQ(Browse("GET", "/join/" + code, "").status, 410);
  const std::string session = SessionOf("<b>ada");
  EXPECT_THAT(Browse("GET", "/worklogs", session).body, HasSubstr("Send a worklog"));
  EXPECT_THAT(Browse("GET", "/classes/" + std::to_string(id), session).body,
              Not(HasSubstr("Invitations")));
}

TEST_F(ClassSiteTest, AMentorMarksByTheForm) {
  const int64_t id = MakeClass();
  const std::string ada = Joined(id, "ada");
  const Json sent = Good("POST", "/api/worklogs", ada, Packed(LostMatch()), 201);
  const std::string page = "/worklogs/" + sent["worklog"]["id"].dump();
  const std::string session = SessionOf("M. Entor"), csrf = "csrf=" + CsrfTokenOf(session);
  EXPECT_THAT(Browse("GET", page, session).body, HasSubstr("Give these marks"));
  EXPECT_THAT(Browse("GET", page, SessionOf("ada")).body, Not(HasSubstr("Give these marks")));
  // Without the field of the session's own, nothing is marked.
  EXPECT_EQ(Browse("POST", page + "/grade", session, "upload=1&revision=0&points.depth=25").status,
            403);
  const ServedReply marked = Browse("POST", page + "/grade", session,
                                    csrf + "&upload=1&revision=0&points.depth=25&note=hm");
  EXPECT_EQ(marked.status, 303);
  const ServedReply late = Browse("POST", page + "/grade", session,
                                  csrf + "&upload=1&revision=0&points.depth=3&note=kept");
  EXPECT_EQ(late.status, 409);
  EXPECT_THAT(late.body, HasSubstr("marked this worklog"));
  EXPECT_THAT(late.body, HasSubstr("value=\"kept\""));
  EXPECT_EQ(
      Browse("POST", page + "/grade", session, csrf + "&upload=1&revision=1&points.depth=x").status,
      400);
  EXPECT_THAT(Browse("GET", "/classes/" + std::to_string(id) + "/sheet", session).body,
              HasSubstr("M. Entor"));
  EXPECT_THAT(Browse("GET", page + "/report", session).body, HasSubstr("<main>"));
}

// 'No worklogs yet that you may read', with two there.
TEST_F(ClassSiteTest, AMentorOfTheServerSeesTheWorklogsOfAllClasses) {
  const int64_t first = MakeClass(R"(,"deadline":"2099-12-01T18:00+01:00")");
  const Json other = Good("POST", "/api/classes", mentor_, R"({"name":"graphics"})", 201);
  const std::string ada = Joined(first, "ada"), bob = Joined(first, "bob"),
                    cas = Joined(other["class"]["id"], "cas");
  Good("POST", "/api/worklogs", ada, Packed(LostMatch()), 201);
  Good("POST", "/api/worklogs", cas, Packed(LostMatch()), 201);
  EXPECT_EQ(Good("GET", "/api/worklogs", mentor_)["worklogs"].size(), 2U);
  const std::string page = Browse("GET", "/worklogs", SessionOf("M. Entor")).body;
  for (const char* text : {"ada", "cas", "kernels", "graphics"}) EXPECT_THAT(page, HasSubstr(text));
  EXPECT_THAT(page, Not(HasSubstr("No worklogs")));
  EXPECT_EQ(Good("GET", "/api/worklogs?class=" + std::to_string(first), mentor_)["worklogs"].size(),
            1U);
  // A member hears how many are hidden.
  EXPECT_THAT(Browse("GET", "/worklogs", SessionOf("bob")).body,
              HasSubstr("1 worklog of others is hidden until the deadline."));
  EXPECT_EQ(Good("GET", "/api/worklogs", bob)["hidden"], 1);
}

TEST_F(ClassSiteTest, TheSheetHasJobsOfThoseWithoutAWorklog) {
  const int64_t id = MakeClass();
  const std::string ada = Joined(id, "ada");
  NewJob asked;
  asked.author = *hall_->accounts().FindByName("ada").value();
  asked.problem = "softmax";
  asked.name = "mine.cpp";
  ASSERT_EQ(hall_->jobs().Submit(asked, InstantNow())->result, Submission::kAccepted);
  const std::string page = "/classes/" + std::to_string(id) + "/sheet";
  EXPECT_THAT(Browse("GET", page, SessionOf("M. Entor")).body, HasSubstr("no worklog"));
  const std::string csv =
      Ask("GET", "/api/classes/" + std::to_string(id) + "/sheet.csv", mentor_).body;
  EXPECT_THAT(csv, HasSubstr("finals\nada,student,0,"));
  EXPECT_THAT(csv, HasSubstr(",1,0,0,\n"));
}

TEST_F(ClassSiteTest, AMentorMovesTheDeadlineAndClosesByThePage) {
  const std::string page = "/classes/" + std::to_string(MakeClass());
  const std::string ada = Joined(1, "ada");
  const std::string session = SessionOf("M. Entor"), csrf = "csrf=" + CsrfTokenOf(session);
  const auto shown = [&](const std::string& who) {
    return Browse("GET", page, SessionOf(who)).body;
  };
  EXPECT_THAT(shown("ada"), Not(HasSubstr("Close the class now")));
  EXPECT_EQ(Browse("POST", page + "/deadline", session, csrf + "&deadline=soon").status, 400);
  EXPECT_EQ(
      Browse("POST", page + "/deadline", session, csrf + "&deadline=2099-12-01T18:00Z").status,
      303);
  EXPECT_THAT(shown("ada"), HasSubstr("2099-12-01 18:00"));
  const std::string student = SessionOf("ada");
  EXPECT_EQ(
      Browse("POST", page + "/close", student, "sure=yes&csrf=" + CsrfTokenOf(student)).status,
      403);
  EXPECT_THAT(Browse("POST", page + "/close", session, csrf).body, HasSubstr("you are sure"));
  EXPECT_EQ(Browse("POST", page + "/close", session, csrf + "&sure=yes").status, 303);
  EXPECT_THAT(shown("M. Entor"), HasSubstr("<strong>over</strong>"));
  EXPECT_THAT(shown("M. Entor"), Not(HasSubstr("Close the class now")));
  EXPECT_THAT(Browse("POST", page + "/close", session, csrf + "&sure=yes").body,
              HasSubstr("is over already"));
}

TEST_F(ClassSiteTest, AForeignSiteMakesNoInvitation) {
  const std::string target = "/classes/" + std::to_string(MakeClass()) + "/invitations";
  const std::string session = SessionOf("M. Entor");
  const std::string form = "role=student&uses=1&lasts=1d&for=";
  EXPECT_EQ(Browse("POST", target, session, form).status, 403);
  const ServedReply made = Browse("POST", target, session, form + "&csrf=" + CsrfTokenOf(session));
  EXPECT_EQ(made.status, 200);
  EXPECT_THAT(made.body, HasSubstr("/join/"));
}

}  // namespace
}  // namespace assay
