#include "serve/job_terms.h"

#include <gmock/gmock.h>

#include <limits>

#include "model/sample_verdicts.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

class JobTermsTest : public ::testing::Test {
 protected:
  JobTermsTest() {
    problem_.facts.name = job_.problem = "softmax";
    problem_.facts.sizes = {{"small", {{"ROWS", "64"}, {"COLUMNS", "1024"}}},
                            {"large", {{"ROWS", "65536"}, {"COLUMNS", "32768"}}}};
    problem_.hash = "file";
    job_.size = "small";
    job_.source_hash = "source";
    verdict_ = SampleVerdict(Outcome::kFaster);
    verdict_.candidate.hash = "source";
    verdict_.problem.name = "softmax";
    verdict_.problem.hash = "file";
    verdict_.problem.size = "small";
    verdict_.problem.set = problem_.facts.sizes.at("small");
  }
  // The refusal; "none": it is taken.
  std::string Refusal() const {
    const auto checked = CheckJobTerms(job_, &problem_, verdict_);
    return checked ? "none" : checked.error().message;
  }

  Job job_;
  OfferedProblem problem_;
  Verdict verdict_;
};

TEST_F(JobTermsTest, TheJobsOwnVerdictIsTaken) {
  EXPECT_EQ(Refusal(), "none");
  verdict_ = SampleVerdict(Outcome::kBuildFailed);
  verdict_.candidate.hash = "source";
  verdict_.problem.hash = "file";
  verdict_.problem.name = "softmax";
  verdict_.problem.size.clear();
  verdict_.problem.set = problem_.facts.sizes.at("small");
  EXPECT_EQ(Refusal(), "none") << "a problem of the server's own has no size's name at a runner";
}

// A verdict on a tiny size was counted for a job of the size large.
TEST_F(JobTermsTest, AnotherSizeOrAnotherConstantIsRefused) {
  verdict_.problem.set = problem_.facts.sizes.at("large");
  EXPECT_THAT(Refusal(), HasSubstr("another size than the job's: COLUMNS = 32768, ROWS = 65536"));
  verdict_.problem.set = problem_.facts.sizes.at("small");
  verdict_.problem.size = "large";
  EXPECT_THAT(Refusal(), HasSubstr("of the size large"));
  verdict_.problem.size.clear();
  job_.set = {{"ROWS", "65"}};
  EXPECT_THAT(Refusal(), HasSubstr("another size"));
  verdict_.problem.set["ROWS"] = "65";
  EXPECT_EQ(Refusal(), "none");
  verdict_.problem.set["EXTRA"] = "1";
  EXPECT_THAT(Refusal(), HasSubstr("another size"));
}

TEST_F(JobTermsTest, WithoutASizeTheFilesOwnConstantsHold) {
  job_.size.clear();
  EXPECT_THAT(Refusal(), HasSubstr("not the file's own constants"));
  verdict_.problem.size.clear();
  verdict_.problem.set.clear();
  EXPECT_EQ(Refusal(), "none");
}

TEST_F(JobTermsTest, AnotherFileSourceOrOpponentIsRefused) {
  verdict_.problem.hash = "another";
  EXPECT_THAT(Refusal(), HasSubstr("another file than the server's"));
  verdict_.problem.hash = "file";
  verdict_.problem.name = "matmul";
  EXPECT_THAT(Refusal(), HasSubstr("calls the problem matmul")) << "the board goes by the name";
  verdict_.problem.name = "softmax";
  verdict_.candidate.hash = "another";
  EXPECT_THAT(Refusal(), HasSubstr("another source"));
  verdict_.candidate.hash = "source";
  job_.opponent_hash = "opponent";
  EXPECT_THAT(Refusal(), HasSubstr("another opponent"));
  job_.opponent_hash.clear();
  verdict_.speed->against = CandidateFile{"slow.cpp", "slow"};
  EXPECT_THAT(Refusal(), HasSubstr("another opponent"));
}

TEST_F(JobTermsTest, TermsOfTheRunnersOwnAreRefused) {
  const Verdict honest = verdict_;
  job_.name = "mine.cu";
  EXPECT_THAT(Refusal(), HasSubstr("not made on a GPU"));
  job_.name = "mine.cpp";
  verdict_.speed->threshold = 0.5;
  EXPECT_THAT(Refusal(), HasSubstr("more than 0.5 times the speed"));
  verdict_ = honest;
  verdict_.speed->headline = "compiled";
  EXPECT_THAT(Refusal(), HasSubstr("the baseline compiled"));
  verdict_ = honest;
  verdict_.correctness->tolerance = "allclose:1";
  EXPECT_THAT(Refusal(), HasSubstr("the tolerance allclose:1"));
  problem_.facts.tolerance = "allclose:1";
  EXPECT_EQ(Refusal(), "none");
  verdict_ = SampleVerdict(Outcome::kCorrect);
  verdict_.candidate.hash = "source";
  verdict_.problem = honest.problem;
  EXPECT_THAT(Refusal(), HasSubstr("correctness alone"));
}

// A promoted runner told of 60x, certified, with an interval from 1 to 61: the spot check agreed.
TEST_F(JobTermsTest, AVerdictThatContradictsItselfIsRefused) {
  BaselineResult& eager = verdict_.speed->baselines.at("eager");
  const BaselineResult good = eager;
  eager.decision = "slower";
  EXPECT_THAT(Refusal(), HasSubstr("its outcome is faster, and its decision slower"));
  eager = good;
  eager.ci_low = good.speedup * 1.1;
  EXPECT_THAT(Refusal(), HasSubstr("outside its interval"));
  eager = good;
  eager.certified_speedup = good.speedup * 2;
  EXPECT_THAT(Refusal(), HasSubstr("more than its speedup is certified"));
  eager.certified_speedup = 0.9;
  EXPECT_THAT(Refusal(), HasSubstr("no gain is certified"));
  eager = good;
  eager.time_ns = -1;
  EXPECT_THAT(Refusal(), HasSubstr("no positive number"));
  // A clear case ends before there is an interval.
  eager = good;
  eager.ci_low = eager.ci_high = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Refusal(), "none");
  verdict_.correctness->passed = false;
  EXPECT_THAT(Refusal(), HasSubstr("did not pass gate 1"));
  verdict_.correctness->passed = true;
  verdict_.speed->headline = "inductor";
  EXPECT_NE(Refusal(), "none");
}

}  // namespace
}  // namespace assay
