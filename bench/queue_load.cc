// The queue and the archive in PostgreSQL under load: scripted workers claim works, wait as long as
// a judgement takes, and end them with a verdict; a controller adds works, reads their ends and
// appends the verdicts to the archive. Prints a JSON object a case. bench/queue_load.py starts a
// server for it.
//
//   queue_load URL rate RUN WORKERS JUDGE_MS SECONDS   keeps 5,000 works queued
//   queue_load URL fill RUN WORKS                      queues works of a lower priority
//   queue_load URL append RECORDS BATCH                appends verdicts to the archive
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "archive/postgres_store.h"
#include "base/clock.h"
#include "queue/postgres_queue.h"
#include "queue_script.h"

namespace assay {
namespace {

constexpr int64_t kQueuedLow = 5000, kBatch = 1000;
constexpr double kMs = 1e6, kWarmS = 3;  // claims of the first seconds are not counted

struct Times {
  std::vector<double> claim_ms, end_ms;
  double judge_ms = 0, all_ms = 0;  // of judgements, from the end before to the end

  void Add(const Times& other) {
    judge_ms += other.judge_ms;
    all_ms += other.all_ms;
    claim_ms.insert(claim_ms.end(), other.claim_ms.begin(), other.claim_ms.end());
    end_ms.insert(end_ms.end(), other.end_ms.begin(), other.end_ms.end());
  }
};

double At(std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  std::ranges::sort(sorted);
  return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))];
}

double SinceMs(int64_t begin_ns) { return static_cast<double>(MonotonicNs() - begin_ns) / kMs; }

void Need(const Result<void>& done) {
  if (done) return;
  fmt::print(stderr, "queue_load: {}\n", done.error().message);
  std::exit(1);
}

template <typename T>
T Need(Result<T> result) {
  if (result) return std::move(*result);
  fmt::print(stderr, "queue_load: {}\n", result.error().message);
  std::exit(1);
}

struct Switches {
  std::atomic<bool> counts{false}, stop{false};
};

// Each judgement takes between a half and one and a half of `judge_ms`.
void Work(const std::string& url, int number, double judge_ms, const Switches& switches,
          Times* times) {
  const auto queue = Need(PostgresQueue::Open(url, {60, 3}));
  const WorkerFacts worker = ScriptedWorker(fmt::format("worker {}", number));
  std::mt19937_64 random(static_cast<uint64_t>(number));
  std::uniform_real_distribution<double> share(0.5, 1.5);
  ::poll(nullptr, 0, static_cast<int>(judge_ms * share(random)));  // they do not start as one
  int64_t ended_ns = MonotonicNs();
  while (!switches.stop) {
    int64_t begin_ns = MonotonicNs();
    const auto claimed = Need(queue->Claim(worker, 1));
    if (claimed.empty()) {
      ::poll(nullptr, 0, 5);
      continue;
    }
    if (switches.counts) times->claim_ms.push_back(SinceMs(begin_ns));
    begin_ns = MonotonicNs();
    if (judge_ms > 0) ::poll(nullptr, 0, static_cast<int>(judge_ms * share(random)));
    const double judged_ms = SinceMs(begin_ns);
    begin_ns = MonotonicNs();
    (void)Need(
        queue->End(worker, claimed[0], {ScriptedVerdict(claimed[0].run + claimed[0].key), ""}));
    const double all_ms = SinceMs(std::exchange(ended_ns, MonotonicNs()));
    if (!switches.counts) continue;
    times->end_ms.push_back(SinceMs(begin_ns));
    times->judge_ms += judged_ms;
    times->all_ms += all_ms;
  }
}

int64_t AddWorks(PostgresQueue& queue, const std::string& run, int64_t first, int64_t count,
                 int priority = 0) {
  std::vector<NewWork> works;
  for (int64_t i = first; i < first + count; ++i) {
    works.push_back(ScriptedWork(run, i));
    works.back().priority = priority;
  }
  (void)Need(queue.Add(works));
  return first + count;
}

// Counts of the controller, and the seconds that each of its tasks took.
struct Controlled {
  int64_t kept = 0, batches = 0;
  double read_s = 0, archive_s = 0, add_s = 0;
};

// Adds works to the `added` first ones, and keeps verdicts, until `stop`.
Controlled Control(const std::string& url, const std::string& run, int64_t added,
                   const std::atomic<bool>& stop) {
  const auto queue = Need(PostgresQueue::Open(url, {60, 3}));
  const auto store = Need(PostgresStore::Open(url));
  Controlled done;
  int64_t after = 0;
  int64_t last = 0;  // size of the last batch
  while (!stop) {
    if (last < kBatch) {
      Need(queue->Wait(50));
      ::poll(nullptr, 0, 20);  // so that a batch comes together
    }
    int64_t begin_ns = MonotonicNs();
    const auto ended = Need(queue->Ended(run, after, kBatch));
    last = std::ssize(ended);
    done.read_s += SinceMs(begin_ns) / 1e3;
    begin_ns = MonotonicNs();
    std::vector<NewRecord> records;
    for (const EndedWork& work : ended) records.push_back(ScriptedRecord(work));
    done.kept += std::ssize(Need(store->Append(records)));
    done.archive_s += SinceMs(begin_ns) / 1e3;
    ++done.batches;
    if (!ended.empty()) after = ended.back().sequence;
    begin_ns = MonotonicNs();
    if (added - done.kept < kQueuedLow) added = AddWorks(*queue, run, added, kBatch);
    done.add_s += SinceMs(begin_ns) / 1e3;
  }
  return done;
}

int Rate(const std::string& url, const std::string& run, int workers, double judge_ms,
         double seconds) {
  Switches switches;
  std::atomic<bool> stop_controller{false};
  (void)Need(PostgresStore::Open(url));
  const int64_t added = AddWorks(*Need(PostgresQueue::Open(url, {60, 3})), run, 0, 2 * kQueuedLow);
  Controlled controlled;
  std::thread controller([&] { controlled = Control(url, run, added, stop_controller); });
  std::vector<Times> times(static_cast<size_t>(workers));
  std::vector<std::thread> threads;
  for (int i = 0; i < workers; ++i)
    threads.emplace_back(
        [&, i] { Work(url, i, judge_ms, switches, &times[static_cast<size_t>(i)]); });
  ::poll(nullptr, 0, static_cast<int>(kWarmS * 1e3));
  const int64_t begin_ns = MonotonicNs();
  switches.counts = true;
  ::poll(nullptr, 0, static_cast<int>(seconds * 1e3));
  const double took_s = SinceMs(begin_ns) / 1e3;
  switches.counts = false;
  switches.stop = true;
  for (std::thread& thread : threads) thread.join();
  ::poll(nullptr, 0, 1500);  // the controller reads the rest
  stop_controller = true;
  controller.join();
  Times all;
  for (const Times& each : times) all.Add(each);
  fmt::print(
      "{{\"what\": \"rate\", \"workers\": {}, \"judge_ms\": {}, \"seconds\": {:.2f}, "
      "\"verdicts\": {}, \"verdicts_per_s\": {:.1f}, \"kept\": {}, \"batches\": {}, \"read_s\": "
      "{:.2f}, \"archive_s\": {:.2f}, \"add_s\": {:.2f}, \"idle_share\": {:.4f}, "
      "\"claim_ms_median\": {:.3f}, "
      "\"claim_ms_p99\": {:.3f}, \"end_ms_median\": {:.3f}, \"end_ms_p99\": {:.3f}}}\n",
      workers, judge_ms, took_s, all.end_ms.size(), static_cast<double>(all.end_ms.size()) / took_s,
      controlled.kept, controlled.batches, controlled.read_s, controlled.archive_s,
      controlled.add_s, all.all_ms > 0 ? 1 - all.judge_ms / all.all_ms : 0, At(all.claim_ms, 0.5),
      At(all.claim_ms, 0.99), At(all.end_ms, 0.5), At(all.end_ms, 0.99));
  return 0;
}

int Fill(const std::string& url, const std::string& run, int64_t works) {
  const auto queue = Need(PostgresQueue::Open(url, {60, 3}));
  const int64_t begin_ns = MonotonicNs();
  for (int64_t added = 0; added < works;)
    added = AddWorks(*queue, run, added, std::min<int64_t>(works - added, 10 * kBatch), -1);
  const double took_s = SinceMs(begin_ns) / 1e3;
  fmt::print("{{\"what\": \"add\", \"works\": {}, \"seconds\": {:.2f}, \"works_per_s\": {:.0f}}}\n",
             works, took_s, static_cast<double>(works) / took_s);
  return 0;
}

int Append(const std::string& url, int64_t records, int64_t batch) {
  const auto store = Need(PostgresStore::Open(url));
  const int64_t begin_ns = MonotonicNs();
  for (int64_t first = 0; first < records; first += batch) {
    std::vector<NewRecord> some;
    for (int64_t i = first; i < std::min(records, first + batch); ++i) {
      EndedWork work;
      work.key = fmt::format("candidate {}", i);
      work.end.verdict = ScriptedVerdict(fmt::format("appended {} of {}", i, batch));
      some.push_back(ScriptedRecord(work));
    }
    (void)Need(store->Append(some));
  }
  const double took_s = SinceMs(begin_ns) / 1e3;
  fmt::print(
      "{{\"what\": \"append\", \"records\": {}, \"batch\": {}, \"seconds\": {:.2f}, "
      "\"records_per_s\": {:.0f}}}\n",
      records, batch, took_s, static_cast<double>(records) / took_s);
  return 0;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 6 && words[1] == "rate")
    return assay::Rate(words[0], words[2], std::atoi(words[3].c_str()), std::atof(words[4].c_str()),
                       std::atof(words[5].c_str()));
  if (words.size() == 4 && words[1] == "fill")
    return assay::Fill(words[0], words[2], std::atoll(words[3].c_str()));
  if (words.size() == 4 && words[1] == "append")
    return assay::Append(words[0], std::atoll(words[2].c_str()), std::atoll(words[3].c_str()));
  fmt::print(stderr,
             "queue_load URL rate RUN WORKERS JUDGE_MS SECONDS\nqueue_load URL fill RUN WORKS\n"
             "queue_load URL append RECORDS BATCH\n");
  return 2;
}
