// Asks the workers of a fleet, and turns their lines into events. A request is answered once: what
// a worker says of another request, of a candidate that it was not asked about, or twice, is passed
// over. The owner decides what is asked, what is asked again, and which worker is given up.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/verdict.h"
#include "worker_client/event.h"
#include "worker_client/fleet.h"

namespace assay {

// The candidates of a request, by the owner's numbers. A request to describe a problem has one
// number, for the description.
struct WorkerBatch {
  std::vector<size_t> items;
  bool tried = false;  // the owner's note: it was asked for before
};

// kDone and kFailed end a request: kFailed if some of it has no answer. kEnded ends all that its
// worker had.
struct ClientEvent : WorkerEvent {
  size_t worker = 0;
  WorkerBatch batch;                 // of the request being served; once it has ended, the rest
  std::vector<WorkerBatch> waiting;  // kEnded: the rest of the requests behind it

  // Of an answer, or of a kProgress with a candidate.
  size_t item() const { return batch.items[*candidate]; }
  // Returns the verdict of an answer. Errors: kEnvironment, also where it has no verdict.
  Result<Verdict> Answer() const;
};

// Not thread-safe. The fleet must outlive it.
class WorkerClient {
 public:
  explicit WorkerClient(Fleet& fleet, std::function<int64_t()> now_ns = MonotonicNs)
      : fleet_(fleet), now_ns_(std::move(now_ns)), workers_(fleet.size()) {}
  ~WorkerClient() { Abort(); }
  WorkerClient(const WorkerClient&) = delete;
  WorkerClient& operator=(const WorkerClient&) = delete;

  size_t size() const { return workers_.size(); }
  std::string Name(size_t worker) const { return fleet_.Name(worker); }
  bool runs(size_t worker) const { return workers_[worker].runs; }
  size_t requests(size_t worker) const { return workers_[worker].requests.size(); }
  // True while a worker has a request, or an event has not been returned.
  bool busy() const;

  // Starts a worker unless it runs (Fleet). Errors: kEnvironment.
  Result<void> Start(size_t worker, int sharers);
  // An id that no request of this client has had.
  std::string NewId() { return std::to_string(next_id_++); }
  // Sends a running worker a request. It serves its requests in their order.
  void Ask(size_t worker, const std::string& id, const std::string& line, WorkerBatch batch);
  // Waits for the next event; nullopt: none came in time. A worker that has a request and says
  // nothing for half an hour is killed, and has ended.
  std::optional<ClientEvent> Wait(int timeout_ms);

  // Ends the only request of a worker: by itself if it can, else with the worker. Nothing more is
  // heard of it.
  void Cancel(size_t worker);
  // Lets a worker without requests end by itself. Events of others meanwhile are kept for Wait.
  void Retire(size_t worker);
  // Ends a worker at once. Returns the rest of what it had.
  std::vector<WorkerBatch> Kill(size_t worker);
  // Ends all workers, by themselves if they can. `hear` gets the events that come meanwhile.
  void Finish(const std::function<void(const ClientEvent&)>& hear);
  // Ends all workers at once. Nothing more is heard of what they had.
  void Abort();

 private:
  struct Request {
    std::string id;
    WorkerBatch batch;
    std::vector<bool> answered;  // of each item

    WorkerBatch Rest() const;
  };
  struct Worker {
    bool runs = false;
    std::deque<Request> requests;  // the first is being served
    int64_t heard_ns = 0;          // last word, or the request to a worker that had none
  };

  // Waits for the fleet, and keeps the event that comes of it.
  void Listen(int timeout_ms);
  std::optional<ClientEvent> Heard(size_t worker, const std::string& line);
  ClientEvent Ended(size_t worker, const std::string& end);
  // Listens until this worker has settled, and drops its events; kills it if that takes too long.
  void Settle(size_t worker, const std::function<bool()>& is_settled);
  void WatchForSilence();

  Fleet& fleet_;
  const std::function<int64_t()> now_ns_;
  std::vector<Worker> workers_;
  std::deque<ClientEvent> events_;  // not returned yet
  size_t next_id_ = 0;
};

}  // namespace assay
