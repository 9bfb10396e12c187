// Conducts a run: gives the workers of a fleet batches of candidates, and keeps what becomes of
// each as soon as it is known.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/stop_token.h"
#include "run/plan.h"
#include "run/rows.h"
#include "session/asked_terms.h"
#include "worker_client/client.h"

namespace assay {

struct RunProgress {
  size_t worker = 0;
  const RunItem* item = nullptr;  // in hand; null: the problem's start, or a build
  const RunProblem* problem = nullptr;
  std::string text;
  double fraction = 0;
};

struct JudgedItem {
  RunRow row;
  size_t item = 0;  // of the plan
};

struct ConductEvents {
  // Keeps rows that came together, all or none. An error ends the run.
  std::function<Result<void>(std::vector<JudgedItem> judged)> rows;
  std::function<void(const RunProgress&)> progress = [](const RunProgress&) {};
  std::function<void(const std::string&)> notice = [](const std::string&) {};
  std::function<std::string()> date;
};

struct ConductEnd {
  size_t left = 0;             // items that have no row of this call
  std::optional<Error> error;  // why, if not all were done
};

class Conductor {
 public:
  // `terms` without a problem. All arguments must outlive this object. Items of one problem are
  // judged together, at most `batch_max` at a time.
  Conductor(const RunPlan& plan, const AskedTerms& terms, Fleet& fleet, ConductEvents events,
            size_t batch_max = 16);

  // Judges these items of the plan. Beside workers of the same device a candidate may lack memory
  // or time, and a request may fail: such are judged again at the end, by the worker that has the
  // device for itself. A worker that ends is started again.
  // What it had in hand is tried once more, and after a second end in the same place has an error
  // for a row. A worker that fails four times in a row, without a verdict between, is given up: its
  // device is lost. Problems that are too large for it, or need what its machine lacks, are no
  // failures of its own. Ends when all items have their row, no worker is left, a row cannot be
  // kept, or `stop` is set.
  ConductEnd Run(const std::vector<size_t>& items, StopToken stop);

 private:
  struct WorkerState {
    int failures = 0;  // in a row, without a verdict
    bool given_up = false;
  };

  void Queue(const std::vector<size_t>& items);
  // Returns how many workers of this worker's device run now, it included.
  size_t Sharers(size_t worker) const;
  bool Shares(size_t worker) const { return Sharers(worker) > 1; }
  // Starts the workers, or one of each device.
  Result<void> StartWorkers();
  // Conducts what waits, with the workers that run.
  void Work(StopToken stop);
  // Ends all workers, and queues what was put off, for one of each device. False: there is nothing.
  bool GoOnAlone();
  void Feed(size_t worker);
  void Take(const ClientEvent& event);
  // Keeps what an answer says of its candidate: its verdict, or why it has none.
  void Judged(const ClientEvent& answer);
  // Queues the rest of a failed request again, or gives it the error.
  void Failed(const ClientEvent& event);
  // Starts the worker again. What it had in hand when it ended a second time gets the error.
  void Ended(const ClientEvent& event);
  void QueueAgain(WorkerBatch batch);
  void Keep(size_t item, Result<Verdict> verdict);
  void CountFailure(size_t worker, const std::string& why);
  // Ends all workers; takes the verdicts that come meanwhile.
  void StopAll();

  const RunPlan& plan_;
  const AskedTerms& terms_;
  const ConductEvents events_;
  const size_t batch_max_;
  const std::string settings_;  // TermsText
  WorkerClient client_;
  std::deque<WorkerBatch> waiting_;  // each of one problem
  std::vector<size_t> for_alone_;    // items to be judged with a device for themselves
  bool alone_ = false;               // one worker of each device runs
  std::vector<WorkerState> workers_;
  std::vector<int> ends_in_hand_;  // of each item: how often a worker ended over it
  size_t left_ = 0;
  std::optional<Error> error_;  // that ends the run
  std::string last_trouble_;    // of a worker
};

}  // namespace assay
