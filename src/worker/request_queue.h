// The waiting requests of a worker, and the one in hand. A cancellation reaches either at once.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "worker/protocol.h"

namespace assay {

// Safe to use from several threads.
class RequestQueue {
 public:
  static constexpr size_t kWaitingMax = 4096;

  // Adds a request. Returns false if too many wait, or the queue is closed.
  bool Push(WorkerRequest request);
  // Waits for the next request and puts it in hand. Returns nullopt once the queue is closed and
  // empty.
  std::optional<WorkerRequest> Next();
  // Waits at most so long; returns true if Next() would not wait.
  bool Await(int timeout_ms);
  // Does the same as Next() without waiting; returns nullopt if no request waits. In both cases the
  // last request is no longer in hand.
  std::optional<WorkerRequest> TakeWaiting();
  // Returns a copy of the request that Next() would return now; nullopt: none waits.
  std::optional<WorkerRequest> Peek() const;
  // Removes a waiting request and returns true. Otherwise returns false, and stops the request in
  // hand if it has this id.
  bool Cancel(const std::string& id);
  // Refuses further requests; waiting ones are still handed out.
  void Close();
  // Refuses further requests, drops waiting ones, and stops the one in hand.
  void Stop();

  bool closed() const;
  // True if the queue is closed, nothing waits, and nothing is in hand.
  bool done() const;

  // Set while the request in hand is to stop; Next() clears it.
  const std::atomic<bool>& stop_flag() const { return stop_; }

 private:
  std::optional<WorkerRequest> TakeFirst();  // with mutex_ held

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<WorkerRequest> waiting_;  // guarded by mutex_, like all below
  std::string in_hand_;
  bool closed_ = false;
  std::atomic<bool> stop_{false};
};

}  // namespace assay
