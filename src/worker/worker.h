// Serves requests for judgements on one device, or a set of cores. Requests and events are lines of
// JSON (docs/worker.md). Sessions stay open between requests. No candidate can end the worker. A
// session is closed after a failure of the machine.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "session/import_builds.h"
#include "session/session.h"
#include "worker/request_queue.h"
#include "worker/session_cache.h"

namespace assay {

struct WorkerOptions {
  std::string device;         // of all requests: "cpu" or "cuda"; empty: as each needs
  uint64_t memory_bytes = 0;  // limit of all open sessions
  MachineProfile machine;     // as measured here; empty parts were not
  size_t sessions_max = 16;
  int sharers = 1;  // workers that share the device, this one included
  // A pipe for the events, whose reader is looked for while the last request is served; -1: none.
  int events_fd = -1;
};

class Worker {
 public:
  // `write` gets each event's line, from two threads, one at a time. It returns false if nobody
  // listens any more; the worker then ends.
  Worker(WorkerOptions options, std::function<bool(const std::string& line)> write);

  // Serves the lines of `input_fd` until a shutdown request or its end, and then the waiting
  // requests; or until `interrupted`.
  void Run(int input_fd, const std::atomic<bool>& interrupted);

 private:
  // A request, and what is known of it before its session is at hand.
  struct Task {
    WorkerRequest request;
    Result<SessionTerms> terms;
    std::string key;                          // of its session
    std::unique_ptr<CandidateBuilds> builds;  // under way; null where nothing is judged
  };
  // The builds that began while an earlier request was served.
  struct BuildsAhead {
    std::string id;  // of their request
    std::unique_ptr<ImportBuilds> builds;
  };

  void ReadRequests(int input_fd, const std::atomic<bool>& interrupted);
  // Returns false after a shutdown request: read no more.
  bool TakeLine(const std::string& line);
  // Resolves a request and begins its builds. Call it while nothing is measured.
  std::unique_ptr<Task> Begin(WorkerRequest request) const;
  // Returns a request's terms as this worker judges by them. Errors: kUsage.
  Result<SessionTerms> TermsOf(const WorkerRequest& request) const;
  // `ahead`: takes what was begun for this task, and leaves what is begun for the next.
  void Serve(Task& task, BuildsAhead* ahead);
  Result<void> Judge(Task& task, BuildsAhead* ahead);
  // Begins the builds of the request that waits, if no measurement can be on their cores.
  BuildsAhead BeginBuildsAhead() const;
  // Draws for the session's next batch. Begins the request that comes meanwhile, and returns it.
  std::unique_ptr<Task> PrepareAhead(const std::string& key);
  void Write(const std::string& line);

  const WorkerOptions options_;
  const std::function<bool(const std::string&)> write_;
  std::mutex writing_;
  RequestQueue queue_;
  SessionCache<Session> sessions_;
};

}  // namespace assay
