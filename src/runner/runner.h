// A runner: asks a server for jobs, judges them here, one at a time, and tells the results. It ends
// each job once: a result is kept until the server has counted or refused it. Several jobs in a row
// that this machine fails make it wait, and start its worker afresh: no job ends it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/stop_token.h"
#include "http/back_off.h"
#include "runner/job.h"
#include "runner/job_worker.h"
#include "runner/kept_results.h"
#include "runner/server_link.h"

namespace assay {

struct RunnerTerms {
  RunnerFacts facts;
  std::vector<std::string> suites;  // folders of installed ones
  int poll_s = 20;                  // the server holds a call for a job so long
  double heartbeat_s = 15;
  double progress_s = 1;  // at least, between two calls with progress of one stage
  BackOff back_off;
  int failures_max = 3;  // jobs in a row that the machine failed: then it waits
  double pause_s = 60;   // so long; twice as long each time, until a job succeeds
  double pause_s_max = 900;
};

struct RunnerParts {
  const ServerLink& server;
  JobWorker& worker;
  KeptResults& results;
  JobFiles& files;
  RepeatSurroundings repeats;
  std::function<void(const std::string&)> say;  // to the user, a line
};

class Runner {
 public:
  Runner(RunnerTerms terms, RunnerParts parts);
  // Takes jobs until `stop`. Returns the reason of its end: kInterrupted, kUsage (the server does
  // not want this runner), kEnvironment (this machine cannot judge).
  Error Run(StopToken stop);

 private:
  // Each returns an error that ends the runner.
  Result<void> Deliver(StopToken stop);
  Result<void> TakeOne(StopToken stop);
  Result<void> Judge(const std::string& body, StopToken stop);
  Result<void> End(const TakenJob& job, const Result<std::string>& judged, bool given_up,
                   StopToken stop);
  // Tells how the job goes, if it is time. Returns false once the server wants it no more.
  bool Report(const TakenJob& job, const std::string& event, StopToken stop);
  // Waits after jobs that failed here, and takes none until a fresh worker is ready.
  Result<void> Pause(const Error& last, StopToken stop);
  // Gives a job up that has no result; the server's answer does not matter.
  void GiveBack(const TakenJob& job, const Error& error);
  // Waits before the next call after one that failed; says so once.
  Result<void> BackOffAfter(const ServerReply& reply, StopToken stop);
  ServerReply Post(const std::string& path, std::string body, double total_s, StopToken stop);

  const RunnerTerms terms_;
  const RunnerParts parts_;
  int calls_failed_ = 0;    // in a row
  int jobs_failed_ = 0;     // by this machine, in a row; another attempt at one is the same job
  std::string job_failed_;  // the last of them
  int pauses_ = 0;          // since the last job that succeeded
  // Of the job in hand.
  std::string event_, stage_;  // the newest that is not told; the stage of the last that was
  int64_t told_ns_ = 0;
  bool report_failed_ = false;  // the last one
};

}  // namespace assay
