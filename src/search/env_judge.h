// Judges candidates of several problems by worker processes, a batch at a time: what an environment
// for training asks. Nothing here touches a device.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/stop_token.h"
#include "model/verdict.h"
#include "run/fleet.h"
#include "session/asked_terms.h"
#include "toolchain/build.h"

namespace assay {

struct EnvTask {
  AskedTerms terms;  // with the problem
  CandidateSource source;
};

class EnvJudge {
 public:
  virtual ~EnvJudge() = default;
  // A result a task, in their order. Errors say nothing of a candidate; they end no other task but
  // kInterrupted.
  virtual std::vector<Result<Verdict>> Judge(std::span<const EnvTask> tasks, StopToken stop) = 0;
  // The lines of a problem's signature: "input x float32[64, 8]". Errors: kUsage (the problem does
  // not load), kEnvironment, kInterrupted.
  virtual Result<std::vector<std::string>> Describe(const AskedTerms& terms, StopToken stop) = 0;
};

class FleetEnvJudge : public EnvJudge {
 public:
  // The fleet must outlive this object. Workers start when they are needed; one that ends is
  // started again, and what it had in hand is asked for once more.
  explicit FleetEnvJudge(Fleet& fleet) : fleet_(fleet), workers_(fleet.size()) {}
  ~FleetEnvJudge() override;
  std::vector<Result<Verdict>> Judge(std::span<const EnvTask> tasks, StopToken stop) override;
  Result<std::vector<std::string>> Describe(const AskedTerms& terms, StopToken stop) override;

 private:
  // Candidates with equal terms; none: a description.
  struct Request {
    AskedTerms terms;
    std::vector<size_t> tasks;
    bool tried = false;
  };
  struct Worker {
    bool runs = false;
    std::string id;  // of the request that it serves; empty: none
    Request request;
  };
  // Results of one call.
  struct Answers {
    std::vector<std::optional<Result<Verdict>>> verdicts;
    std::optional<Result<std::vector<std::string>>> description;
  };

  // Serves all of them.
  void Serve(std::deque<Request> waiting, std::span<const EnvTask> tasks, StopToken stop,
             Answers* answers);
  Result<void> Send(size_t worker, Request request, std::span<const EnvTask> tasks);
  void Heard(size_t worker, const std::string& line, std::deque<Request>* waiting,
             Answers* answers);
  void End(size_t worker, const Error& error, std::deque<Request>* waiting, Answers* answers);
  static void Fail(const Request& request, const Error& error, Answers* answers);

  Fleet& fleet_;
  std::vector<Worker> workers_;
  size_t next_id_ = 0;
};

}  // namespace assay
