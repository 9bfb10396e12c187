#include "web/api.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <set>

#include "archive/judged.h"
#include "base/hash.h"
#include "model/sample_verdicts.h"
#include "model/verdict_json.h"
#include "web/class_api.h"
#include "web/hall_testing.h"

namespace assay {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class ApiTest : public HallTestBase {
 protected:
  // A runner of the server's.
  std::string ServersToken() {
    Accounts accounts = hall_->accounts();
    return accounts.IssueAccess(accounts.ServerAccount(InstantNow())->id, InstantNow()).value();
  }
  ServedReply Take(const std::string& token, const std::string& device = "cpu") {
    return AskAs(token, "POST", "/api/runner/take",
                 {{"runner", "box"}, {"device", device}, {"version", "1"}, {"wait_s", 0}});
  }
  Json VerdictOn(const Json& lease, const std::string& id) {
    Verdict verdict = SampleVerdict(Outcome::kFaster);
    verdict.id = id;
    const Json& problem = lease["job"]["problem"];
    verdict.problem.name = "softmax";
    verdict.problem.hash = problem["hash"].get<std::string>();
    verdict.problem.size = problem["size"].get<std::string>();
    verdict.problem.set =
        hall_->catalogue().Find("softmax").value()->facts.sizes.at(verdict.problem.size);
    verdict.candidate.hash = Sha256Hex(lease["job"]["candidate"]["source"].get<std::string>());
    return Json::parse(VerdictToJson(verdict, -1));
  }
  ServedReply End(const std::string& token, const Json& lease, const Json& verdict) {
    return AskAs(token, "POST", "/api/runner/jobs/" + lease["job"]["id"].dump() + "/end",
                 {{"lease", lease["lease"]}, {"verdict", verdict}});
  }
};

TEST_F(ApiTest, TheDescriptionHasTheRoutesThatAre) {
  const Json description = Json::parse(OpenApiText());
  std::set<std::string> described, served;
  for (const auto& [path, methods] : description["paths"].items())
    for (const auto& [method, operation] : methods.items())
      if (method != "parameters") described.insert(method + " " + path);
  const ClassDesk desk{TarLibrary::Open(ASSAY_BUILD_DIRECTORY "/lib/assay/tar.so").value(), ""};
  std::vector<Route> routes = ApiRoutes(parts_.wake);
  for (Route& route : ClassApiRoutes(desk)) routes.push_back(std::move(route));
  for (const Route& route : routes) {
    std::string method = route.method;
    for (char& letter : method) letter = static_cast<char>(letter | 0x20);
    served.insert(method + " " + route.pattern);
    ASSERT_TRUE(description["paths"].contains(route.pattern)) << route.pattern;
    const Json& operations = description["paths"][route.pattern];
    const bool open = operations.at(method).contains("security");
    EXPECT_EQ(open, route.access == Access::kAnyone) << route.pattern;
    size_t number = 0;
    for (size_t at = 0; (at = route.pattern.find('{', at)) != std::string::npos; ++at) {
      const std::string name = route.pattern.substr(at + 1, route.pattern.find('}', at) - at - 1);
      EXPECT_EQ(operations.at("parameters").at(number++).at("name"), name) << route.pattern;
    }
  }
  EXPECT_EQ(described, served);
}

TEST_F(ApiTest, AJobGoesFromItsAuthorToARunnerAndBack) {
  const ServedReply posted = AskAs(ann_, "POST", "/api/jobs", Candidate());
  ASSERT_EQ(posted.status, 202) << posted.body;
  EXPECT_EQ(JsonOf(posted)["job"]["state"], "queued");
  EXPECT_EQ(JsonOf(posted)["job"]["place"], 1);
  EXPECT_THAT(woken_, Contains("queue"));
  const std::string server = ServersToken();
  const ServedReply taken = Take(server);
  ASSERT_EQ(taken.status, 200) << taken.body;
  const Json lease = JsonOf(taken);
  EXPECT_EQ(lease["job"]["problem"]["name"], "softmax");
  EXPECT_EQ(lease["job"]["problem"]["file"], nullptr);
  EXPECT_EQ(lease["job"]["candidate"]["source"], "int a;\n");
  EXPECT_EQ(Take(server).status, 204);
  const ServedReply progress =
      AskAs(server, "POST", "/api/runner/jobs/1/progress",
            {{"lease", lease["lease"]}, {"event", {{"event", "progress"}, {"stage", "speed"}}}});
  EXPECT_EQ(JsonOf(progress)["go_on"], true);
  EXPECT_EQ(JsonOf(End(server, lease, VerdictOn(lease, "ab12")))["counted"], true);
  EXPECT_EQ(JsonOf(End(server, lease, VerdictOn(lease, "ab12")))["counted"], true);
  const Json job = JsonOf(AskAs(ben_, "GET", "/api/jobs/1"))["job"];
  EXPECT_EQ(job["state"], "done");
  EXPECT_EQ(job["verdict"], "ab12");
  const Json read = JsonOf(AskAs(ben_, "GET", "/api/verdicts/ab12"));
  EXPECT_EQ(read["verdict"]["id"], "ab12");
  EXPECT_EQ(read["entry"]["author"], "ann");
  EXPECT_EQ(read["source"], "int a;\n");
  const Json board = JsonOf(AskAs(ben_, "GET", "/api/board?problem=softmax"));
  EXPECT_EQ(board["boards"][0]["entries"][0]["author"], "ann");
  EXPECT_EQ(board["players"][0]["certified"], 1);
  const Json bundle = JsonOf(AskAs(ben_, "GET", "/api/verdicts/ab12/bundle"));
  EXPECT_EQ(bundle["schema"], "assay.bundle/1");
  EXPECT_EQ(Sha256Hex(bundle["problem"]["file"].get<std::string>()),
            lease["job"]["problem"]["hash"]);
  EXPECT_EQ(AskAs(ben_, "GET", "/verdicts/ab12").status, 200);
}

TEST_F(ApiTest, ABundleHasTheTermsOfTheRecordButForThoseOfTheMachine) {
  Verdict verdict = SampleVerdict(Outcome::kFaster);
  verdict.id = "cd34";
  verdict.problem.name = "softmax";
  verdict.problem.hash = hall_->catalogue().Find("softmax").value()->hash;
  verdict.candidate.path = "mine.c";
  verdict.candidate.hash = Sha256Hex("int a;\n");
  const JudgedSource judged{
      "mine.c", "int a;\n", "softmax",
      R"({"problem":"softmax","size":"tiny","device":"cpu","python":"/bin/py","budget_s":5.0})"};
  ASSERT_TRUE(hall_->archive().Append(RecordsOfVerdict(judged, verdict)));
  const Json bundle = JsonOf(AskAs(ben_, "GET", "/api/verdicts/cd34/bundle"));
  EXPECT_EQ(bundle["terms"], Json({{"budget_s", 5.0}})) << bundle.dump();
  // Nobody submitted it: it has a page, and no rank.
  EXPECT_EQ(AskAs(ben_, "GET", "/verdicts/cd34").status, 200);
  EXPECT_EQ(JsonOf(AskAs(ben_, "GET", "/api/board"))["players"], Json::array());
}

TEST_F(ApiTest, EventsComeAsAStreamThatEnds) {
  ASSERT_EQ(AskAs(ann_, "POST", "/api/jobs", Candidate()).status, 202);
  const Headers headers{{"authorization", "Bearer " + ann_}, {"accept", "text/event-stream"}};
  const ServedReply reply = Ask("GET", "/api/jobs/1/events", headers);
  ASSERT_TRUE(reply.stream);
  EXPECT_EQ(reply.content_type, "text/event-stream");
  EXPECT_EQ(reply.stream->topic, JobTopic(1));
  EXPECT_EQ(*reply.stream->next(), "id: 1\ndata: {\"event\":\"queued\"}\n\n");
  EXPECT_THAT(*reply.stream->next(), HasSubstr(":")) << "a sign of life";
  EXPECT_EQ(AskAs(ann_, "DELETE", "/api/jobs/1").status, 200);
  EXPECT_EQ(*reply.stream->next(),
            "id: 2\ndata: {\"event\":\"ended\",\"state\":\"cancelled\"}\n\n");
  EXPECT_FALSE(reply.stream->next());
  Headers again = headers;
  again["last-event-id"] = "1";
  EXPECT_THAT(*Ask("GET", "/api/jobs/1/events", again).stream->next(), HasSubstr("id: 2\n"));
  const Json polled = JsonOf(AskAs(ann_, "GET", "/api/jobs/1/events?after=1"));
  ASSERT_EQ(polled["events"].size(), 1u);
  EXPECT_EQ(polled["events"][0]["event"]["state"], "cancelled");
}

TEST_F(ApiTest, BadSubmissionsAreToldWhatToDo) {
  const auto refusal = [&](const std::string& field, const Json& value) {
    Json body = Candidate();
    body[field] = value;
    const ServedReply reply = AskAs(ann_, "POST", "/api/jobs", body);
    return std::to_string(reply.status) + " " +
           JsonOf(reply)["error"].value("message", std::string("none"));
  };
  EXPECT_THAT(refusal("problem", "sofmax"),
              HasSubstr("404 there is no problem sofmax; did you mean 'softmax'?"));
  EXPECT_THAT(refusal("size", "huge"), HasSubstr("400 softmax has no size huge"));
  EXPECT_THAT(refusal("source", ""), HasSubstr("400 source is missing"));
  EXPECT_THAT(refusal("source", std::string((1 << 20) + 1, 'x')), HasSubstr("413 "));
  EXPECT_THAT(refusal("set", {{"A B", "1"}}), HasSubstr("400 "));
  EXPECT_THAT(refusal("against", "abcd"), HasSubstr("404 there is no verdict abcd"));
  EXPECT_THAT(refusal("kind", "finalist"), HasSubstr("400 kind must be"));
  for (const std::string name : {"../a.cpp", "/etc/passwd", "a/b.cpp", ".cpp", "a.sh", "-x.cpp",
                                 "a b.cpp", "<script>.cpp", "a.cpp\n", ""})
    EXPECT_THAT(refusal("name", name), HasSubstr("400 name must be a file's name")) << name;
  EXPECT_EQ(AskAs(ann_, "POST", "/api/jobs", Json::array()).status, 400);
  EXPECT_EQ(JsonOf(AskAs(ann_, "GET", "/api/jobs"))["jobs"].size(), 0u);
}

// curl -d sends JSON as a form: a source with a percent sign was a broken form.
TEST_F(ApiTest, ABodyIsJsonWhateverItIsCalled) {
  const std::string body = Candidate("int a; // 100% of it & more = better\n").dump();
  for (const std::string type :
       {"application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain"}) {
    const ServedReply reply = Ask(
        "POST", "/api/jobs", {{"authorization", "Bearer " + ann_}, {"content-type", type}}, body);
    EXPECT_EQ(reply.status, 202) << type << reply.body;
  }
  const ServedReply form = Ask(
      "POST", "/api/jobs",
      {{"authorization", "Bearer " + ann_}, {"content-type", "application/x-www-form-urlencoded"}},
      "problem=softmax&name=a.cpp&source=int");
  EXPECT_EQ(form.status, 400);
  // A session's form field is no header: another site's page cannot send one.
  const std::string cookie = SignIn(ann_);
  const ServedReply forged =
      Ask("POST", "/api/jobs",
          {{"cookie", cookie}, {"content-type", "application/x-www-form-urlencoded"}}, body);
  EXPECT_EQ(forged.status, 403);
}

// The address is somebody else's word, and the page has a command to copy.
TEST_F(ApiTest, NoWordOfTheAddressIsInACommandToCopy) {
  for (const std::string query :
       {"problem=softmax%3Bcurl%20evil", "problem=softmax&size=tiny%3Bcurl%20evil",
        "against=%3Bcurl%20evil"})
    EXPECT_THAT(AskAs(ann_, "GET", "/submit?" + query).body, Not(HasSubstr("curl evil"))) << query;
  EXPECT_THAT(AskAs(ann_, "GET", "/submit?problem=softmax&size=tiny").body,
              HasSubstr("assay submit softmax"));
}

TEST_F(ApiTest, AFullQueueAnswers429AndAClassMayBeOver) {
  hall_->submit_terms = [](const Account&, Instant) {
    return Result<SubmitTerms>(SubmitTerms{{.queued_by_account_max = 1}, "", 0});
  };
  EXPECT_EQ(AskAs(ann_, "POST", "/api/jobs", Candidate()).status, 202);
  const ServedReply reply = AskAs(ann_, "POST", "/api/jobs", Candidate());
  EXPECT_EQ(reply.status, 429);
  EXPECT_NE(HeaderOf(reply, "Retry-After"), "");
  hall_->submit_terms = [](const Account&, Instant) {
    return Result<SubmitTerms>(SubmitTerms{{}, "the deadline is over", 0});
  };
  EXPECT_EQ(AskAs(ben_, "POST", "/api/jobs", Candidate()).status, 403);
}

TEST_F(ApiTest, ARunnerHasItsOwnersJobsUntilAMentorPromotesIt) {
  AskAs(ann_, "POST", "/api/jobs", Candidate());
  EXPECT_EQ(Take(ben_).status, 204);
  EXPECT_EQ(AskAs(ben_, "POST", "/api/runners/1/promotion", {{"promoted", true}}).status, 403);
  EXPECT_EQ(AskAs(mentor_, "POST", "/api/runners/1/promotion", {{"promoted", true}}).status, 200);
  const ServedReply taken = Take(ben_);
  ASSERT_EQ(taken.status, 200);
  // The result counts under the lease alone.
  Json lease = JsonOf(taken);
  lease["lease"] = std::string(32, '0');
  EXPECT_EQ(JsonOf(End(ben_, lease, VerdictOn(lease, "ab12")))["counted"], false);
  EXPECT_EQ(JsonOf(AskAs(ann_, "GET", "/api/jobs/1"))["job"]["state"], "running");
}

// A student's own runner reported 97x for the student's job: it was ranked first, unmarked.
TEST_F(ApiTest, WhatAnOwnRunnerSaysIsMarkedAndHasNoRank) {
  AskAs(ben_, "POST", "/api/jobs", Candidate());
  const Json lease = JsonOf(Take(ben_));
  ASSERT_EQ(JsonOf(End(ben_, lease, VerdictOn(lease, "ab12")))["counted"], true);
  EXPECT_EQ(JsonOf(AskAs(ann_, "GET", "/api/jobs/1"))["job"]["own_runner"], true);
  const Json board = JsonOf(AskAs(ann_, "GET", "/api/board?problem=softmax"));
  EXPECT_EQ(board["players"], Json::array());
  EXPECT_EQ(board["boards"], Json::array());
  ASSERT_EQ(board["own_runners"].size(), 1u);
  EXPECT_EQ(board["own_runners"][0]["author"], "ben");
  for (const std::string target : {"/jobs", "/jobs/1", "/?problem=softmax", "/"})
    EXPECT_THAT(AskAs(ann_, "GET", target).body, HasSubstr(">own runner</span>")) << target;
  EXPECT_THAT(AskAs(ann_, "GET", "/verdicts/ab12").body,
              HasSubstr("Judged by the author's own runner."));
  EXPECT_THAT(AskAs(ann_, "GET", "/compare?a=ab12&b=ab12").body, HasSubstr(">own runner</span>"));
  EXPECT_THAT(AskAs(ann_, "GET", "/problems/softmax").body, Not(HasSubstr("verdicts/ab12")));
}

// A class that followed its page waited for ever: no page said that no runner takes its jobs.
TEST_F(ApiTest, PagesSayThatNoRunnerTakesAJobUntilAMentorPromotesOne) {
  AskAs(ann_, "POST", "/api/jobs", Candidate());
  EXPECT_EQ(JsonOf(AskAs(ann_, "GET", "/api/jobs/1"))["job"]["for_nobody"], true);
  EXPECT_THAT(AskAs(ann_, "GET", "/jobs/1").body, HasSubstr("No runner takes this job now."));
  EXPECT_THAT(AskAs(ann_, "GET", "/jobs").body, HasSubstr("No runner takes 1 job of the queue."));
  EXPECT_THAT(AskAs(mentor_, "GET", "/machine").body,
              HasSubstr("assay worker --server http://127.0.0.1:8080"));
  Take(ben_);  // it is there, for ben's jobs
  EXPECT_EQ(JsonOf(AskAs(ann_, "GET", "/api/jobs/1"))["job"]["for_nobody"], true);
  EXPECT_THAT(AskAs(ann_, "GET", "/machine").body, Not(HasSubstr("/runners/1/promotion")));
  const std::string cookie = SignIn(mentor_);
  const std::string page = Ask("GET", "/machine", {{"cookie", cookie}}).body;
  EXPECT_THAT(page, HasSubstr("action=\"/runners/1/promotion\""));
  const std::string csrf = CsrfTokenOf(cookie.substr(cookie.find('=') + 1));
  const Headers form{{"cookie", cookie}, {"content-type", "application/x-www-form-urlencoded"}};
  EXPECT_EQ(Ask("POST", "/runners/1/promotion", form, "promoted=yes").status, 403);
  EXPECT_EQ(Ask("POST", "/runners/1/promotion", form, "promoted=yes&csrf=" + csrf).status, 303);
  EXPECT_EQ(JsonOf(AskAs(ann_, "GET", "/api/jobs/1"))["job"]["for_nobody"], false);
  EXPECT_THAT(AskAs(ann_, "GET", "/jobs/1").body, Not(HasSubstr("No runner takes")));
  EXPECT_THAT(AskAs(ann_, "GET", "/machine").body, Not(HasSubstr("No runner")));
  EXPECT_EQ(Take(ben_).status, 200);
  EXPECT_EQ(Ask("POST", "/runners/1/promotion", form, "promoted=no&csrf=" + csrf).status, 303);
  EXPECT_EQ(JsonOf(AskAs(ann_, "GET", "/api/jobs/1"))["job"]["state"], "queued");
}

// A mentor of one class made a mentor of the server, and cancelled the jobs of other classes.
TEST_F(ApiTest, AMentorOfOneClassManagesThatClassAlone) {
  Accounts accounts = hall_->accounts();
  const Account of_class = accounts.Make("M. Class", Role::kMentor, 7, InstantNow()).value();
  const std::string token = accounts.IssueAccess(of_class.id, InstantNow()).value();
  Take(token);
  EXPECT_EQ(AskAs(token, "POST", "/api/runners/1/promotion", {{"promoted", true}}).status, 403);
  EXPECT_EQ(AskAs(token, "POST", "/runners/1/promotion").status, 403);
  EXPECT_EQ(AskAs(mentor_, "POST", "/api/runners/1/promotion", {{"promoted", true}}).status, 200);
  const Json mine{{"name", "mine"}, {"role", "mentor"}};
  EXPECT_EQ(AskAs(token, "POST", "/api/accounts", mine).status, 403);
  EXPECT_EQ(AskAs(token, "GET", "/api/accounts").status, 403);
  EXPECT_EQ(AskAs(mentor_, "POST", "/api/accounts", mine).status, 201);
  AskAs(ann_, "POST", "/api/jobs", Candidate());
  EXPECT_EQ(AskAs(token, "DELETE", "/api/jobs/1").status, 403) << "ann is in no class";
  const Account student = accounts.Make("student", Role::kStudent, 7, InstantNow()).value();
  const std::string of_student = accounts.IssueAccess(student.id, InstantNow()).value();
  AskAs(of_student, "POST", "/api/jobs", Candidate("int b;\n"));
  EXPECT_EQ(AskAs(token, "DELETE", "/api/jobs/2").status, 200);
}

TEST_F(ApiTest, ARunnerThatIsAwayIsNotIdle) {
  Take(ben_);
  EXPECT_THAT(AskAs(ann_, "GET", "/machine").body, HasSubstr(">idle</span>"));
  ASSERT_TRUE(hall_->database().Number("UPDATE runners SET seen_s = 1000000000"));
  const std::string page = AskAs(ann_, "GET", "/machine").body;
  EXPECT_THAT(page, HasSubstr("away since"));
  EXPECT_THAT(page, Not(HasSubstr(">idle</span>")));
  EXPECT_EQ(JsonOf(AskAs(ann_, "GET", "/api/runners"))["runners"][0]["there"], false);
}

TEST_F(ApiTest, ASizeThatFitsNoRunnerIsGrey) {
  AskAs(ann_, "POST", "/api/jobs", Candidate());
  const std::string server = ServersToken();
  const Json lease = JsonOf(Take(server));
  EXPECT_THAT(AskAs(ann_, "GET", "/submit").body, Not(HasSubstr("Fits no runner")));
  AskAs(server, "POST", "/api/runner/jobs/1/end",
        {{"lease", lease["lease"]},
         {"error", {{"kind", "unjudged"}, {"message", "it needs 500 GB"}}}});
  EXPECT_EQ(JsonOf(AskAs(ann_, "GET", "/api/jobs/1"))["job"]["failure"], "it needs 500 GB");
  const std::string page = AskAs(ann_, "GET", "/submit").body;
  EXPECT_THAT(page, HasSubstr("Fits no runner that is here: softmax tiny."));
  EXPECT_THAT(page, HasSubstr("data-too-large=\"tiny\""));
}

TEST_F(ApiTest, AMemberEndsNoFinalAndNoSpotCheck) {
  NewJob asked;
  asked.author = *hall_->accounts().FindByName("ann").value();
  asked.problem = "softmax";
  asked.name = "mine.cpp";
  for (const JobKind kind : {JobKind::kFinalist, JobKind::kSpotCheck}) {
    asked.kind = kind;
    const int64_t job = hall_->jobs().Submit(asked, InstantNow())->job.id;
    const std::string path = "/api/jobs/" + std::to_string(job);
    EXPECT_EQ(AskAs(ann_, "DELETE", path).status, 403);
    EXPECT_EQ(AskAs(mentor_, "DELETE", path).status, 200);
  }
}

TEST_F(ApiTest, HiddenSourcesStayHidden) {
  AskAs(ann_, "POST", "/api/jobs", Candidate("int hush_hush;\n"));
  const std::string server = ServersToken();
  const Json lease = JsonOf(Take(server));
  ASSERT_EQ(JsonOf(End(server, lease, VerdictOn(lease, "ab12")))["counted"], true);
  hall_->source_hidden_until_s = [](const Account& viewer, const BoardEntry& entry, Instant) {
    return Result<int64_t>(viewer.name == entry.author ? 0 : 1'800'000'000);
  };
  for (const std::string target :
       {"/api/verdicts/ab12", "/api/verdicts/ab12/bundle", "/api/compare?a=ab12&b=ab12",
        "/verdicts/ab12", "/compare?a=ab12&b=ab12"}) {
    EXPECT_EQ(AskAs(ben_, "GET", target).body.find("hush_hush"), std::string::npos) << target;
    // A verdict beside itself has no difference to show.
    if (target != "/compare?a=ab12&b=ab12") {
      EXPECT_NE(AskAs(ann_, "GET", target).body.find("hush_hush"), std::string::npos) << target;
    }
  }
  EXPECT_NE(AskAs(ben_, "GET", "/verdicts/ab12").body.find("2027-01-15 08:00"), std::string::npos);
  // A compiler's first error quotes the source, and so may a job's reason and its events.
  AskAs(ann_, "POST", "/api/jobs", Candidate("int broken_line\n"));
  const Json second = JsonOf(Take(server));
  AskAs(server, "POST", "/api/runner/jobs/2/progress",
        {{"lease", second["lease"]}, {"event", {{"event", "progress"}, {"text", "broken_line"}}}});
  Json failed = VerdictOn(second, "cd34");
  failed["outcome"] = "build_failed";
  failed["message"] = "mine.cpp:1: expected ; after broken_line";
  failed["speed"] = nullptr;
  failed["candidate"]["flags"] = "-Dbroken_line";  // a line of the source says so
  ASSERT_EQ(JsonOf(End(server, second, failed))["counted"], true);
  AskAs(ann_, "POST", "/api/jobs", Candidate("int third\n"));
  AskAs(server, "POST", "/api/runner/jobs/3/end",
        {{"lease", JsonOf(Take(server))["lease"]},
         {"error", {{"kind", "usage"}, {"message", "broken_line"}}}});
  for (const std::string target : {"/api/verdicts/cd34", "/verdicts/cd34", "/api/jobs/2/events",
                                   "/jobs/2", "/api/jobs/3", "/api/jobs/3/events", "/jobs/3"}) {
    EXPECT_EQ(AskAs(ben_, "GET", target).body.find("broken_line"), std::string::npos) << target;
    EXPECT_NE(AskAs(ann_, "GET", target).body.find("broken_line"), std::string::npos) << target;
  }
  EXPECT_THAT(AskAs(ben_, "GET", "/api/jobs?all=1").body, Not(HasSubstr("broken_line")));
  Json against = Candidate();
  against["against"] = "ab12";
  EXPECT_EQ(AskAs(ben_, "POST", "/api/jobs", against).status, 403);
  EXPECT_EQ(AskAs(ann_, "POST", "/api/jobs", against).status, 202);
  const Json compare = JsonOf(Take(server));
  EXPECT_EQ(compare["job"]["kind"], "compare");
  EXPECT_EQ(compare["job"]["opponent"]["source"], "int hush_hush;\n");
}

TEST_F(ApiTest, AccountsAndTokens) {
  const Json made =
      JsonOf(AskAs(mentor_, "POST", "/api/accounts", {{"name", "model"}, {"role", "machine"}}));
  const std::string token = made["token"];
  EXPECT_EQ(JsonOf(AskAs(token, "GET", "/api/me"))["account"]["role"], "machine");
  EXPECT_EQ(AskAs(mentor_, "POST", "/api/accounts", {{"name", "model"}}).status, 400);
  const std::string second = JsonOf(AskAs(token, "POST", "/api/me/tokens"))["token"];
  const std::string fresh = JsonOf(AskAs(second, "DELETE", "/api/me/tokens"))["token"];
  EXPECT_EQ(AskAs(token, "GET", "/api/me").status, 401);
  EXPECT_EQ(AskAs(second, "GET", "/api/me").status, 401);
  EXPECT_EQ(AskAs(fresh, "GET", "/api/me").status, 200);
}

}  // namespace
}  // namespace assay
