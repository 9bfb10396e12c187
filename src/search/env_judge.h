// Judges candidates of several problems by worker processes, a batch at a time: what an environment
// for training asks. Nothing here touches a device.
#pragma once

#include <deque>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/stop_token.h"
#include "model/verdict.h"
#include "session/asked_terms.h"
#include "toolchain/build.h"
#include "worker_client/client.h"

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
  explicit FleetEnvJudge(Fleet& fleet) : client_(fleet) {}
  std::vector<Result<Verdict>> Judge(std::span<const EnvTask> tasks, StopToken stop) override;
  Result<std::vector<std::string>> Describe(const AskedTerms& terms, StopToken stop) override;

 private:
  // One call's request, and its listener.
  struct Work {
    std::function<std::string(const std::string& id, const WorkerBatch&)> line;
    std::function<void(const ClientEvent& answer)> answered;
    std::function<void(size_t item, const Error&)> failed;
  };

  // Serves all of them.
  void Serve(std::deque<WorkerBatch> waiting, const Work& work, StopToken stop);

  WorkerClient client_;
};

}  // namespace assay
