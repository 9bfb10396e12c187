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
  void ReadRequests(int input_fd, const std::atomic<bool>& interrupted);
  // Returns false once nothing more is to be read.
  bool TakeLine(const std::string& line);
  void Serve(const WorkerRequest& request);
  Result<void> Judge(const WorkerRequest& request, const SessionTerms& terms,
                     const std::string& key);
  // Draws for the next batch, where nobody waits.
  void PrepareAhead(const std::string& key);
  void Write(const std::string& line);

  const WorkerOptions options_;
  const std::function<bool(const std::string&)> write_;
  std::mutex writing_;
  RequestQueue queue_;
  SessionCache<Session> sessions_;
};

}  // namespace assay
