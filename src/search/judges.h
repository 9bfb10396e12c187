// Judges the candidates of a search by worker processes. Nothing here touches a device.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "search/sources.h"
#include "session/asked_terms.h"
#include "worker_client/client.h"

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

  void Add(JudgeTask task) override;
  void Know(const std::string& artifact) override { known_.insert(artifact); }
  void Race(double bound) override { screening_.bound = bound; }
  // True while anything that was added has not been returned.
  bool busy() const { return !waiting_.empty() || !asked_.empty(); }
  // A request that ends in an environment error is repeated once, also where the worker ended.
  Result<std::vector<JudgedTask>> Wait(int timeout_ms) override;
  std::vector<JudgedTask> Stop() override;
  // A worker judges the candidates of its request one after the other.
  size_t judged_at_once() const override { return client_.size(); }

 private:
  struct Task {
    JudgeTask task;
    int failures = 0;  // requests on it that ended in an error, workers that ended over it
  };

  Result<void> Feed(size_t worker);
  void Take(const ClientEvent& event);
  void Judged(const ClientEvent& answer);
  // A request has ended; what has no answer is tried again, or has this error. Where its worker
  // ended, the first of them alone is to blame.
  void EndRequest(const ClientEvent& end);

  WorkerClient client_;
  AskedTerms screening_;
  const AskedTerms confirming_;
  const JudgesEvents events_;
  const size_t batch_max_;
  std::deque<Task> waiting_;
  std::map<size_t, Task> asked_;  // by the numbers that the client knows them by
  std::vector<JudgedTask> done_;
  std::set<std::string> known_;  // artifacts
  size_t next_item_ = 0;
  int failures_ = 0;  // in a row, without a verdict
  bool any_verdict_ = false;
  Error last_failure_;
};

}  // namespace assay
