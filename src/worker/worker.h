// A process that owns one device, or a set of cores, and judges what it is sent: requests and
// events are lines of JSON (docs/worker.md). Sessions stay open between requests. It survives
// whatever a candidate does; a session in which something of the machine's failed is closed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "session/session.h"
#include "worker/request_queue.h"
#include "worker/session_cache.h"

namespace assay {

struct WorkerOptions {
  std::string device;         // of all requests: "cpu" or "cuda"; empty: as each needs
  uint64_t memory_bytes = 0;  // that open sessions may take
  MachineProfile machine;     // as measured here; empty where nothing was
  size_t sessions_max = 16;
};

class Worker {
 public:
  // `write` gets each event's line; it is called from two threads, one at a time. False: nobody
  // listens any more, and the worker ends.
  Worker(WorkerOptions options, std::function<bool(const std::string& line)> write);

  // Serves the lines of `input_fd` until a shutdown request, its end (what waits is done first), or
  // `interrupted`.
  void Run(int input_fd, const std::atomic<bool>& interrupted);

 private:
  // A request, and what is known of it before its session is at hand.
  struct Task {
    WorkerRequest request;
    Result<SessionTerms> terms;
    std::string key;                          // of its session
    std::unique_ptr<CandidateBuilds> builds;  // under way; null where nothing is judged
  };

  void ReadRequests(int input_fd, const std::atomic<bool>& interrupted);
  // Returns false once nothing more is to be read.
  bool TakeLine(const std::string& line);
  // Resolves a request and begins its builds: nothing may be measured meanwhile.
  std::unique_ptr<Task> Begin(WorkerRequest request) const;
  void Serve(Task& task);
  Result<void> Judge(Task& task);
  // Draws for the session's next batch. A request that comes meanwhile begins, and is returned.
  std::unique_ptr<Task> PrepareAhead(const std::string& key);
  void Write(const std::string& line);

  const WorkerOptions options_;
  const std::function<bool(const std::string&)> write_;
  std::mutex writing_;
  RequestQueue queue_;
  SessionCache<Session> sessions_;
};

}  // namespace assay
