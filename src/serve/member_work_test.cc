#include "serve/member_work.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "serve/job_rows.h"
#include "serve/serve_testing.h"

namespace assay {
namespace {

class MemberWorkTest : public ServeTest {
 protected:
  // A job that has ended, and its row of the board.
  int64_t Judged(const Account& author, const std::string& problem, int stage, double certified,
                 int64_t own_runner = 0, JobKind kind = JobKind::kJudge) {
    Jobs jobs(*database_, {});
    NewJob asked;
    asked.kind = kind;
    asked.author = author;
    asked.problem = problem;
    asked.size = "tiny";
    asked.name = "a.cpp";
    asked.source_hash = fmt::format("hash {}", ++sources_);
    const int64_t id = jobs.Submit(asked, now_)->job.id;
    const auto run = [&](const std::string& sql) {
      SqliteStatement statement = database_->Prepare(sql).value();
      ASSERT_TRUE(statement.Step()) << sql;
    };
    run(
        fmt::format("UPDATE jobs SET state = 'done', ended_s = 1, own_runner = {}, verdict = 'v{}'"
                    " WHERE id = {} RETURNING 1",
                    own_runner, id, id));
    run(
        fmt::format("INSERT INTO board SELECT id, id, verdict, problem, size, 'cpu', 'float32',"
                    " 'native', '', 'student', 'faster', {}, 0, {}, {}, {}, {}, 100, 0, '', source,"
                    " '', own_runner <> 0, '', 0 FROM jobs WHERE id = {} RETURNING 1",
                    stage, certified, certified, certified, certified, id));
    return id;
  }
  std::map<int64_t, MemberWork> Work() {
    Accounts accounts(*database_);
    Classes classes(*database_, accounts);
    Jobs jobs(*database_, {});
    Finals finals(*database_, classes, jobs);
    return WorkOfMembers(*database_, finals, 7).value();
  }

  int sources_ = 0;
};

// The grading sheet knew worklogs alone: a class that had sent jobs had an empty one.
TEST_F(MemberWorkTest, JobsAndProblemsThatCountAreOnTheSheet) {
  Accounts accounts(*database_);
  const Account ada = accounts.Make("ada", Role::kStudent, 7, now_).value(),
                bob = accounts.Make("bob", Role::kStudent, 7, now_).value(),
                cas = accounts.Make("cas", Role::kStudent, 8, now_).value();
  Judged(ada, "softmax", 5, 1.5);
  Judged(ada, "softmax", 4, 0);
  Judged(ada, "gelu", 4, 0);
  Judged(ada, "matmul", 2, 0);
  Judged(ada, "gelu", 5, 2, 0, JobKind::kFinalist);
  Judged(bob, "softmax", 5, 97, kOwnRunner);
  Judged(cas, "softmax", 5, 2);
  const auto work = Work();
  EXPECT_EQ(work.at(ada.id).jobs, 4);
  EXPECT_EQ(work.at(ada.id).correct, 2);
  EXPECT_EQ(work.at(ada.id).faster, 2);
  EXPECT_EQ(work.at(bob.id).jobs, 1);
  EXPECT_EQ(work.at(bob.id).correct, 0) << "what an own runner says counts nowhere";
  EXPECT_FALSE(work.contains(cas.id));
  EXPECT_EQ(FinalsText(work.at(bob.id)), "");
}

TEST_F(MemberWorkTest, AnImportedClassKeepsItsFigures) {
  const Account ada = Accounts(*database_).Make("ada", Role::kStudent, 7, now_).value();
  Judged(ada, "softmax", 5, 1.5, kImportedRunner);
  EXPECT_EQ(Work().at(ada.id).correct, 1);
}

}  // namespace
}  // namespace assay
