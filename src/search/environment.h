// An environment for training: episodes in which a model writes a candidate, and hears what the
// judge found. Requests and events are JSON objects (docs/env.md, docs/env.schema.json).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "archive/judged.h"
#include "base/result.h"
#include "base/stop_token.h"
#include "model/machine_profile.h"
#include "model/problem.h"
#include "search/env_judge.h"
#include "search/prompt.h"
#include "search/reward.h"

namespace assay {

struct EnvironmentTerms {
  std::vector<ProblemChoice> problems;  // a reset without a problem takes one of them by its seed
  bool gradients = false;               // of a reset that does not say (--grad)
  AskedTerms judging;                   // without a problem
  std::string form = "native";          // of candidates: "native", "device", "python"
  int64_t turns = 4;                    // of an episode
  int64_t prompt_tokens = 16'000;
  RewardRules rewards;
  MachineProfile machine;
  std::string toolchain;  // all that a verdict depends on, beside source, terms and problem
  std::string id;         // of this environment in records
};

// The parts that an environment is made of; all must outlive it.
struct EnvironmentParts {
  const PromptTemplates& templates;
  EnvJudge& judge;
  std::function<Result<ProblemRequest>(const ProblemChoice&)> resolve;
  // The machine code of a candidate, for feedback; may give none.
  std::function<NativeCode(const CandidateSource&)> read_code;
  // Keep what happens: verdicts that were not in the cache, and each event of an episode.
  std::function<void(const JudgedSource&, const Verdict&)> judged = [](const JudgedSource&,
                                                                       const Verdict&) {};
  std::function<void(NewRecord)> record = [](const NewRecord&) {};
};

class Environment {
 public:
  Environment(EnvironmentParts parts, EnvironmentTerms terms);
  ~Environment();

  // The event that comes before all others.
  std::string Ready() const;
  // Answers a request's line with an event's, without its end. A bad request has an `error` event.
  std::string Handle(const std::string& line, StopToken stop);
  bool ended() const;  // a shutdown was asked for

 private:
  class Episodes;

  std::unique_ptr<Episodes> episodes_;
};

}  // namespace assay
