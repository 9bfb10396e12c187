// A process that serves is killed again and again, wherever it is: no accepted job is lost, and
// none ends twice. bench/serve_kills.py does the same to the whole server and its runners.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <random>
#include <set>

#include "base/hash.h"
#include "base/unique_fd.h"
#include "model/sample_verdicts.h"
#include "model/verdict_json.h"
#include "serve/hall.h"
#include "serve/serve_testing.h"

namespace assay {
namespace {

constexpr int kKills = 20;
constexpr int64_t kSilenceMs = 1000;

class HallKillsTest : public ServeTest {
 protected:
  void OpenAgain() override {}
  std::unique_ptr<Hall> Open() {
    HallOptions options;
    options.folder = place();
    options.queue = {1'000'000, 1'000'000, 1'000'000};
    options.leases.silence_ms = kSilenceMs;
    return Hall::Open(options, Catalogue()).value();
  }
  static KnownRunner RunnerOf(Hall& hall, Instant now) {
    KnownRunner facts;
    facts.name = "local";
    facts.device = "cpu";
    return hall.leases().Meet(hall.accounts().ServerAccount(now).value(), facts, true, now).value();
  }
  static int64_t Submit(Hall& hall, const Account& author, const std::string& source, Instant now) {
    NewJob asked;
    asked.author = author;
    asked.problem = "softmax";
    asked.name = "mine.cpp";
    asked.source_hash = hall.archive().Put(source).value();
    asked.key = source;
    return hall.jobs().Submit(asked, now).value().job.id;
  }
  static Ending End(Hall& hall, const LeasedJob& leased, Instant now) {
    Verdict verdict = SampleVerdict(Outcome::kFaster);
    // Each attempt has a verdict of its own.
    verdict.id = Sha256Hex(leased.lease).substr(0, 12);
    verdict.problem.name = "softmax";
    verdict.candidate.hash = leased.job.source_hash;
    return hall.End(leased.job.id, leased.lease, VerdictToJson(verdict, -1), now).value();
  }
  // Accepts jobs, takes and ends them until it is killed; every fourth lease is forgotten. Tells of
  // jobs once they are accepted, and once they have ended.
  [[noreturn]] void Live(int life, int told) {
    const auto hall = Open();
    Accounts accounts = hall->accounts();
    auto ann = accounts.FindByName("ann").value();
    if (!ann) ann = accounts.Make("ann", Role::kStudent, 0, InstantNow()).value();
    const auto tell = [&](char what, int64_t job) {
      const std::string line = fmt::format("{}{}\n", what, job);
      if (::write(told, line.data(), line.size()) < 0) ::_exit(1);
    };
    for (int i = 0;; ++i) {
      const Instant now = InstantNow();
      tell('a', Submit(*hall, *ann, fmt::format("// {} {}\n", life, i), now));
      const auto leased = hall->leases().Take(RunnerOf(*hall, now), now).value();
      if (i % 4 == 3 || !leased) continue;
      if (End(*hall, *leased, now) == Ending::kCounted) tell('e', leased->job.id);
    }
  }
  // Kills a life some time after it has accepted its first job.
  void LiveAndKill(int life, std::mt19937_64& dice) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) Live(life, ends[1]);
    const UniqueFd told(ends[0]);
    ::close(ends[1]);
    std::string text(1, '\0');
    ASSERT_EQ(::read(told.get(), text.data(), 1), 1);
    ::poll(nullptr, 0, std::uniform_int_distribution<int>(0, 60)(dice));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    char bytes[4096];
    for (ssize_t size; (size = ::read(told.get(), bytes, sizeof bytes)) > 0;)
      text.append(bytes, static_cast<size_t>(size));
    // A line that broke off was of a job that was accepted, too, but nobody knows which.
    for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
      (text[at] == 'a' ? accepted_ : ended_).insert(std::stoll(text.substr(at + 1, end - at - 1)));
  }
  // Ends all that is left, as runners do once the leases of the dead are over.
  static void Finish(Hall& hall) {
    Instant now = InstantNow();
    for (int round = 0; round < 4; ++round) {
      now.steady_ms += 2 * kSilenceMs;
      ASSERT_TRUE(hall.leases().Expire(now));
      while (const auto leased = hall.leases().Take(RunnerOf(hall, now), now).value())
        ASSERT_EQ(End(hall, *leased, now), Ending::kCounted);
    }
  }

  std::set<int64_t> accepted_, ended_;
};

TEST_F(HallKillsTest, AnAcceptedJobEndsOnceWhateverIsKilled) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 dice(seed);
  for (int life = 0; life < kKills; ++life) LiveAndKill(life, dice);
  const auto hall = Open();
  for (const int64_t job : ended_)
    EXPECT_EQ(hall->jobs().Find(job).value()->state, JobState::kDone) << "job " << job;
  Finish(*hall);
  RecordQuery query;
  query.kind = RecordKind::kVerdict;
  query.limit = 1'000'000;
  std::multiset<std::string> verdicts;
  const std::vector<Record> records = hall->archive().Find(query).value();
  for (const Record& record : records) verdicts.insert(record.facts.id);
  JobQuery all;
  all.limit = 1'000'000;
  std::set<int64_t> known;
  size_t done = 0;
  const std::vector<Job> jobs = hall->jobs().List(all).value();
  for (const Job& job : jobs) {
    SCOPED_TRACE(fmt::format("job {}", job.id));
    known.insert(job.id);
    EXPECT_TRUE(job.state == JobState::kDone || job.state == JobState::kFailed);
    const auto events = hall->jobs().Events(job.id, 0, 1000).value();
    EXPECT_EQ(std::ranges::count_if(
                  events,
                  [](const JobEvent& event) { return event.body.contains("\"event\":\"ended\""); }),
              1);
    if (job.state != JobState::kDone) continue;
    ++done;
    EXPECT_EQ(verdicts.count(job.verdict), 1u);
  }
  EXPECT_EQ(verdicts.size(), done);
  EXPECT_TRUE(std::ranges::includes(known, accepted_));
  EXPECT_GE(accepted_.size(), static_cast<size_t>(kKills));
}

}  // namespace
}  // namespace assay
