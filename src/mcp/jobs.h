// The work that clients asked for, by handle: one piece at a time, in the order in which it was
// asked. Single-threaded; the seat does the work.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "mcp/budget.h"
#include "mcp/seat.h"
#include "model/problem.h"
#include "toolchain/build.h"

namespace assay {

enum class McpJobState { kQueued, kRunning, kDone, kFailed, kCancelled };
std::string_view McpJobStateName(McpJobState state);  // "queued"...

struct McpJob {
  std::string handle;  // "job-4f3a29c1"
  std::string tool;
  std::string problem;                    // its name
  std::optional<CandidateSource> source;  // that is judged
  std::string terms;                      // of judging, as JSON
  // Makes the work, given the seconds that it may take.
  std::function<SeatWork(double seconds_max)> work;

  McpJobState state = McpJobState::kQueued;
  bool cancelling = false;
  int64_t began_ns = 0;
  double seconds_max = 0;  // that it was given
  double seconds = 0;      // that it took
  std::string event;       // the newest, as a worker's line
  std::optional<Result<WorkDone>> done;

  bool ended() const { return state != McpJobState::kQueued && state != McpJobState::kRunning; }
};

class McpJobs {
 public:
  struct Hooks {
    std::function<int64_t()> now_ns;
    std::function<void(const McpJob&)> began;  // the job takes the seat
    std::function<void(const McpJob&)> ended;  // done, failed or cancelled
  };
  // Both must outlive this object.
  McpJobs(Seat& seat, Budget& budget, Hooks hooks);

  // Takes a job that has work, and counts it. `free`: it costs no call, and goes before others.
  // Errors (kUsage): the budget is spent, or too many jobs wait.
  Result<void> Add(McpJob job, bool free);
  McpJob* Find(const std::string& handle);
  // Ends a job soon. Returns false if it has ended already.
  bool Cancel(const std::string& handle);
  // Takes what has ended, tells what is new, begins the next.
  void Tick();
  // Cancels all, and waits for the one that runs.
  void End();
  bool busy() const { return !running_.empty() || !waiting_.empty(); }
  // The handle of the job in hand; empty: none.
  const std::string& running() const { return running_; }

 private:
  void Finish(McpJob& job, McpJobState state);
  void TakeEnded();

  Seat& seat_;
  Budget& budget_;
  const Hooks hooks_;
  std::map<std::string, McpJob> jobs_;
  std::deque<std::string> waiting_, ended_;  // handles
  std::string running_;
};

}  // namespace assay
