// Judges the candidates of a search by worker processes. Nothing here touches a device.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "run/fleet.h"
#include "search/sources.h"
#include "session/asked_terms.h"

namespace assay {

struct JudgesEvents {
  std::function<void(const std::string& text)> progress = [](const std::string&) {};
  std::function<void(const std::string& text)> notice = [](const std::string&) {};
};

class Judges : public VerdictSource {
 public:
  // `screening`: terms of the first look; `confirming`: of the second. The fleet must outlive this
  // object; its workers are started when they are needed.
  Judges(Fleet& fleet, AskedTerms screening, AskedTerms confirming, JudgesEvents events,
         size_t batch_max = 16);
  ~Judges() override;

  void Add(JudgeTask task) override;
  void Know(const std::string& artifact) override { known_.insert(artifact); }
  void Race(double bound) override { screening_.bound = bound; }
  // True while anything that was added has not been returned.
  bool busy() const { return in_hand_ > 0; }
  // A request that ends in an environment error is repeated once, also where the worker ended.
  Result<std::vector<JudgedTask>> Wait(int timeout_ms) override;
  std::vector<JudgedTask> Stop() override;
  // A worker judges the candidates of its request one after the other.
  size_t judged_at_once() const override { return workers_.size(); }

 private:
  struct Task {
    JudgeTask task;
    int failures = 0;  // requests on it that ended in an error, workers that ended over it
  };
  struct Worker {
    bool runs = false;
    std::string id;           // of the request being served; empty: none
    std::vector<Task> tasks;  // of it
    std::vector<bool> judged;
    int64_t heard_ns = 0;
  };

  Result<void> Feed(size_t worker);
  void Take(const Fleet::Said& said);
  // Lets a worker without a request end by itself.
  void Retire(size_t worker);
  void Heard(size_t worker, const std::string& line);
  void Judged(Worker& worker, size_t candidate, JudgedTask judged);
  // The request has ended; what has no verdict is tried again, or has this error. `blamed`: the
  // first of them alone.
  void EndRequest(size_t worker, const Error& error, bool blamed);
  void WatchForSilence();

  Fleet& fleet_;
  AskedTerms screening_;
  const AskedTerms confirming_;
  const JudgesEvents events_;
  const size_t batch_max_;
  std::deque<Task> waiting_;
  std::vector<Worker> workers_;
  std::vector<JudgedTask> done_;
  std::set<std::string> known_;  // artifacts
  size_t in_hand_ = 0, next_id_ = 0;
  int failures_ = 0;  // in a row, without a verdict
  bool any_verdict_ = false;
  Error last_failure_;
};

}  // namespace assay
