// Judges jobs by one worker process, one at a time. A death of the worker costs a job one repeat.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/stop_token.h"
#include "worker_client/client.h"

namespace assay {

class JobWorker {
 public:
  // Uses the fleet's first worker. The fleet must outlive this object.
  JobWorker(Fleet& fleet, std::function<int64_t()> now_ns);

  // Starts the worker, and waits until it is ready. Errors: kEnvironment (it does not start here),
  // kInterrupted.
  Result<void> Start(StopToken stop);

  // Ends the worker, so that the next judgement is by a fresh one.
  void Stop() { client_.Abort(); }

  // Judges by a line of WorkerLine(), and returns the verdict as JSON; of a request to describe a
  // problem, or of a candidate that builds to a known artifact, the event. Calls `look` several
  // times a second, with the worker's newest event, or an empty text; once it returns false, the
  // judgement is cancelled. Errors: kUsage (the job is wrong), kEnvironment (the machine failed
  // twice, or the judgement took more than `seconds_max`), kUnjudged (this machine lacks what the
  // candidate needs), kInterrupted (cancelled, or by `stop`).
  Result<std::string> Judge(const std::string& line, double seconds_max,
                            const std::function<bool(const std::string& event)>& look,
                            StopToken stop);

 private:
  Result<std::string> Try(const std::string& line, int64_t end_ns,
                          const std::function<bool(const std::string&)>& look, StopToken stop);

  WorkerClient client_;
  const std::function<int64_t()> now_ns_;
};

}  // namespace assay
