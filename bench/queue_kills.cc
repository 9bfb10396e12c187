// Kills workers, controllers and connections of the queue and the archive in PostgreSQL, then
// counts: what was acknowledged is there, and nothing is there twice. Exit code 1: something is
// missing.
//
//   queue_kills URL WORKERS KILLS SEED
//
// Processes claim works and end them; two controllers of one run add works, take back those of
// silent workers, and append verdicts to the archive. Each writes to a pipe what was acknowledged
// to it. A victim that was a process is replaced by a new one.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "archive/postgres_store.h"
#include "base/clock.h"
#include "queue/postgres_queue.h"
#include "queue_script.h"

namespace assay {
namespace {

constexpr double kLeaseS = 1;
constexpr int kAttemptsMax = 1000;  // no work shall fail by kills alone
constexpr int64_t kAhead = 200, kBatch = 50;
constexpr int kKillEveryMs = 40, kControllers = 2;
constexpr double kDrainS = 120;
const std::string kRun = "kills";

void Need(const Result<void>& done) {
  if (done) return;
  fmt::print(stderr, "queue_kills: {}\n", done.error().message);
  ::_exit(1);
}

template <typename T>
T Need(Result<T> result) {
  if (result) return std::move(*result);
  fmt::print(stderr, "queue_kills: {}\n", result.error().message);
  ::_exit(1);
}

// One line, in one write.
void Acknowledge(int pipe, const std::string& line) {
  if (::write(pipe, line.data(), line.size()) != std::ssize(line)) ::_exit(2);
}

[[noreturn]] void Work(const std::string& url, int pipe) {
  const auto queue = Need(PostgresQueue::Open(url, {kLeaseS, kAttemptsMax}));
  const std::string name = fmt::format("worker {}", ::getpid());
  const WorkerFacts worker = ScriptedWorker(name);
  std::mt19937_64 random(static_cast<uint64_t>(::getpid()));
  while (true) {
    const auto claimed = Need(queue->Claim(worker, 1 + static_cast<int>(random() % 3)));
    if (claimed.empty()) ::poll(nullptr, 0, 20);
    for (const ClaimedWork& work : claimed) {
      ::poll(nullptr, 0, static_cast<int>(random() % 30));
      if (random() % 8 == 0) {
        Need(queue->GiveBack(worker, std::span(&work, 1)));
        continue;
      }
      const std::string verdict = ScriptedVerdict(work.key + " by " + name);
      if (Need(queue->End(worker, work, {verdict, ""})))
        Acknowledge(pipe, fmt::format("end\t{}\t{}\n", work.key, name));
    }
  }
}

// Of a controller that begins: the last end before those that the archive lacks.
int64_t WhereArchiveEnds(PostgresQueue& queue, PostgresStore& store) {
  std::set<std::string> archived;
  for (const Record& record : Need(store.Find({}))) archived.insert(record.facts.name);
  const QueueCounts counts = Need(queue.Counts(kRun));
  std::vector<std::string> wanted;
  for (int64_t i = 0; i < counts.queued + counts.claimed + counts.judged; ++i)
    if (std::string key = ScriptedWork(kRun, i).key; !archived.contains(key))
      wanted.push_back(std::move(key));
  return Need(queue.ReadFrom(kRun, wanted));
}

[[noreturn]] void Control(const std::string& url, int pipe) {
  const auto queue = Need(PostgresQueue::Open(url, {kLeaseS, kAttemptsMax}));
  const auto store = Need(PostgresStore::Open(url));
  int64_t after = WhereArchiveEnds(*queue, *store);
  while (true) {
    (void)Need(queue->Expire());
    const auto ended = Need(queue->Ended(kRun, after, kBatch));
    std::vector<NewRecord> records;
    for (const EndedWork& work : ended) records.push_back(ScriptedRecord(work));
    const std::vector<Record> appended = Need(store->Append(records));
    for (const Record& record : appended)
      Acknowledge(pipe, fmt::format("record\t{}\t{}\n", record.sequence, record.hash));
    if (!ended.empty()) after = ended.back().sequence;
    const QueueCounts counts = Need(queue->Counts(kRun));
    if (counts.queued < kAhead) {
      const int64_t first = counts.queued + counts.claimed + counts.judged;
      std::vector<NewWork> works;
      for (int64_t i = first; i < first + kBatch; ++i) works.push_back(ScriptedWork(kRun, i));
      (void)Need(queue->Add(works));
      for (const NewWork& work : works) Acknowledge(pipe, fmt::format("added\t{}\t\n", work.key));
    }
    ::poll(nullptr, 0, 10);
  }
}

class Simulation {
 public:
  Simulation(std::string url, int workers, uint64_t seed)
      : url_(std::move(url)), workers_(workers), random_(seed) {
    if (::pipe2(pipe_, O_CLOEXEC) != 0) std::exit(2);
    ::fcntl(pipe_[0], F_SETFL, O_NONBLOCK);
  }

  int Run(int kills) {
    (void)Need(PostgresQueue::Open(url_, {kLeaseS, kAttemptsMax}));
    (void)Need(PostgresStore::Open(url_));
    for (int i = 0; i < workers_ + kControllers; ++i) Start(i);
    for (int i = 0; i < kills; ++i) {
      Pause(kKillEveryMs);
      KillOne();
    }
    Drain();
    for (const pid_t pid : processes_) ::kill(pid, SIGKILL);
    for (const pid_t pid : processes_) ::waitpid(pid, nullptr, 0);
    Read();
    return Report();
  }

 private:
  void Start(int place) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::signal(SIGPIPE, SIG_DFL);
      if (place < kControllers) Control(url_, pipe_[1]);
      Work(url_, pipe_[1]);
    }
    if (std::ssize(processes_) <= place) processes_.resize(static_cast<size_t>(place) + 1);
    processes_[static_cast<size_t>(place)] = pid;
  }

  void KillOne() {
    if (random_() % 3 == 0) {
      auto connection = Need(PostgresConnection::Open(url_));
      (void)Need(connection.Query(
          "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity "
          "WHERE application_name = 'assay' AND pid <> pg_backend_pid() "
          "AND datname = current_database() ORDER BY random() LIMIT 1) victim"));
      ++connections_killed_;
      return;
    }
    const int controller = random_() % 4 == 0;
    const int place =
        controller ? static_cast<int>(random_() % kControllers)
                   : kControllers + static_cast<int>(random_() % static_cast<uint64_t>(workers_));
    ++(controller ? controllers_killed_ : workers_killed_);
    const pid_t pid = processes_[static_cast<size_t>(place)];
    ::kill(pid, SIGKILL);
    int status = 0;
    ::waitpid(pid, &status, 0);
    if (!WIFSIGNALED(status)) ++died_by_themselves_;
    Start(place);
  }

  void Pause(int ms) {
    const Deadline deadline = Deadline::AfterSeconds(ms / 1e3);
    while (!deadline.Expired()) {
      Read();
      ::poll(nullptr, 0, 5);
    }
  }

  // Until the controllers have read what is left; they go on adding, so only the works of now
  // count.
  void Drain() {
    const std::set<std::string> added = added_;
    const Deadline deadline = Deadline::AfterSeconds(kDrainS);
    const auto queue = Need(PostgresQueue::Open(url_, {kLeaseS, kAttemptsMax}));
    while (!deadline.Expired()) {
      Pause(500);
      std::set<std::string> open = added;
      int64_t after = 0;
      while (true) {
        const auto ended = Need(queue->Ended(kRun, after, 1000));
        if (ended.empty()) break;
        for (const EndedWork& work : ended) open.erase(work.key);
        after = ended.back().sequence;
      }
      if (open.empty()) return;
    }
  }

  void Read() {
    char bytes[65536];
    for (ssize_t size; (size = ::read(pipe_[0], bytes, sizeof bytes)) > 0;)
      unread_.append(bytes, static_cast<size_t>(size));
    size_t begin = 0;
    for (size_t end; (end = unread_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const std::string line = unread_.substr(begin, end - begin);
      const size_t first = line.find('\t'), second = line.find('\t', first + 1);
      const std::string kind = line.substr(0, first),
                        what = line.substr(first + 1, second - first - 1),
                        of = line.substr(second + 1);
      if (kind == "end" && !ends_.emplace(what, of).second) ++acknowledged_twice_;
      if (kind == "record") records_.emplace(what, of);
      if (kind == "added") added_.insert(what);
    }
    unread_.erase(0, begin);
  }

  int Report() {
    const auto queue = Need(PostgresQueue::Open(url_, {kLeaseS, kAttemptsMax}));
    const auto store = Need(PostgresStore::Open(url_));
    std::map<std::string, EndedWork> stands;
    int64_t after = 0, twice = 0;
    while (true) {
      const auto ended = Need(queue->Ended(kRun, after, 1000));
      if (ended.empty()) break;
      for (const EndedWork& work : ended) twice += !stands.emplace(work.key, work).second;
      after = ended.back().sequence;
    }
    int64_t lost_ends = 0, lost_works = 0, lost_records = 0, repeated_records = 0;
    for (const auto& [key, worker] : ends_)
      lost_ends += !stands.contains(key) || stands.at(key).worker != worker;
    const auto missing = [&](const std::string& key) { return !stands.contains(key); };
    const QueueCounts counts = Need(queue->Counts(kRun));
    lost_works =
        std::max<int64_t>(0, std::ssize(added_) - counts.queued - counts.claimed - counts.judged);
    const std::vector<Record> all = Need(store->Find({}));
    std::set<std::string> hashes, names;
    for (const Record& record : all) {
      hashes.insert(record.hash);
      repeated_records += !names.insert(record.facts.name).second;
      lost_ends += missing(record.facts.name);
    }
    for (const auto& [sequence, hash] : records_) lost_records += !hashes.contains(hash);
    const ChainReport chain = Need(VerifyChain(*store));
    fmt::print(
        "{{\"what\": \"kills\", \"workers_killed\": {}, \"controllers_killed\": {}, "
        "\"connections_killed\": {}, \"died_by_themselves\": {}, \"works_added\": {}, "
        "\"ends_acknowledged\": {}, \"ends\": {}, \"records_acknowledged\": {}, \"records\": {}, "
        "\"ends_lost\": {}, \"ends_twice\": {}, \"works_lost\": {}, \"records_lost\": {}, "
        "\"records_twice\": {}, \"chain_faults\": {}}}\n",
        workers_killed_, controllers_killed_, connections_killed_, died_by_themselves_,
        added_.size(), ends_.size(), stands.size(), records_.size(), all.size(), lost_ends,
        twice + acknowledged_twice_, lost_works, lost_records, repeated_records,
        chain.faults.size());
    return lost_ends + twice + acknowledged_twice_ + lost_works + lost_records + repeated_records +
                       std::ssize(chain.faults) ==
                   0
               ? 0
               : 1;
  }

  const std::string url_;
  const int workers_;
  std::mt19937_64 random_;
  int pipe_[2] = {-1, -1};
  std::vector<pid_t> processes_;
  std::string unread_;
  std::map<std::string, std::string> ends_, records_;
  std::set<std::string> added_;
  int64_t workers_killed_ = 0, controllers_killed_ = 0, connections_killed_ = 0,
          died_by_themselves_ = 0, acknowledged_twice_ = 0;
};

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  if (argc != 5) {
    fmt::print(stderr, "queue_kills URL WORKERS KILLS SEED\n");
    return 2;
  }
  assay::Simulation simulation(argv[1], std::atoi(argv[2]),
                               static_cast<uint64_t>(std::atoll(argv[4])));
  return simulation.Run(std::atoi(argv[3]));
}
