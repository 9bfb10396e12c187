// Requests that wait for the worker, and the one in hand. A cancellation reaches either at once.
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

  // False: too many wait already.
  bool Push(WorkerRequest request);
  // The next one, which is then in hand; nothing once it is closed and none waits. Waits.
  std::optional<WorkerRequest> Next();
  // The same without waiting; nothing if none waits. Either way the last one is no longer in hand.
  std::optional<WorkerRequest> TakeWaiting();
  // Takes back a request that waits: true. Has the one in hand stop: false. Of one that is neither:
  // false.
  bool Cancel(const std::string& id);
  // Nobody pushes any more; those that wait are still handed out.
  void Close();
  // The same, and the one in hand stops, and none that waits is handed out.
  void Stop();

  bool closed() const;
  // Whether nothing waits, and nothing will.
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
