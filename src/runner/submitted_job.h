// A job as its author sees it: sent to a server, then followed to its end (docs/serve.md).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "base/result.h"
#include "base/stop_token.h"
#include "http/back_off.h"
#include "http/event_stream.h"
#include "runner/server_link.h"

namespace assay {

struct SubmitRequest {
  std::string problem, size, name, source;
  std::map<std::string, std::string> set;
  std::string against;  // id of a verdict; empty: none
  std::string key;      // equal ones are one job, so that a call may be repeated
};

struct JobStatus {
  std::string id, state, problem, size, name, outcome, verdict, failure, runner;
  int64_t place = 0;        // in the queue, from 1; 0: not queued
  bool for_nobody = false;  // it is queued, and no runner that is there takes it
  std::string json;         // all that the server says of it
  bool has_ended() const { return state == "done" || state == "failed" || state == "cancelled"; }
};
// Reads {"job": {...}}. Errors: kEnvironment.
Result<JobStatus> ParseJob(const std::string& body);

struct FollowEvents {
  std::function<void(const JobStatus&)> job = [](const JobStatus&) {
  };  // a change of state or place
  std::function<void(const std::string& event)> event = [](const std::string&) {};  // JSON
  std::function<void(const std::string&)> notice = [](const std::string&) {};
};

struct FollowTerms {
  double queue_poll_s = 2;  // while the job waits
  double poll_s = 1;        // while it runs, where the server has no stream
  double stream_s = 600;    // a longer one is opened again
  double away_s_max = 600;  // without any reply; then it is given up
  double busy_s_max = 60;   // a longer wait that a full queue asks for is told, not waited
  BackOff back_off{0.5, 15};
};

class SubmittedJob {
 public:
  // The server must outlive this object.
  SubmittedJob(const ServerLink& server, RepeatSurroundings repeats, FollowTerms terms,
               FollowEvents events);

  // Errors: kUsage (the server refuses it), kEnvironment (it is away or full), kInterrupted.
  Result<JobStatus> Submit(const SubmitRequest& submission, StopToken stop);
  // The rest takes a job's id.
  Result<JobStatus> Look(const std::string& id, StopToken stop);
  Result<JobStatus> Cancel(const std::string& id, StopToken stop);
  // Waits for its end. Each event is given once, in order.
  Result<JobStatus> Follow(const std::string& id, StopToken stop);
  // Returns a verdict's JSON.
  Result<std::string> Verdict(const std::string& id, StopToken stop);

 private:
  // Repeats a call until the server answers. Errors: as Submit().
  Result<std::string> Ask(const ServerCall& call, StopToken stop);
  // Takes events until the job ends or the stream does. Returns false if there is no stream.
  Result<bool> Stream(const std::string& id, StopToken stop);
  Result<void> Poll(const std::string& id, StopToken stop);
  void Take(int64_t number, const std::string& event);

  const ServerLink& server_;
  const RepeatSurroundings repeats_;
  const FollowTerms terms_;
  const FollowEvents events_;
  int64_t last_ = 0;  // number of the newest event that was given
};

}  // namespace assay
