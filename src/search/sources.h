// The seams between a search and the world: what judges its candidates, and what answers its
// prompts. Workers and proposers stand behind them, or the records of an earlier search.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/verdict.h"
#include "propose/proposer.h"
#include "toolchain/build.h"

namespace assay {

struct JudgeTask {
  std::string key;
  CandidateSource source;
  bool confirms = false;  // alone in its request, by a worker that was just started
};

struct JudgedTask {
  std::string key;
  std::optional<Verdict> verdict;
  std::optional<Error> error;  // in the verdict's place
  bool is_free = false;        // nothing was done for it
  std::string known = {};      // in the verdict's place: the artifact, which has one already
  std::string recorded = {};   // hash of the verdict, if the archive had it (StepResult::known)
};

class VerdictSource {
 public:
  virtual ~VerdictSource() = default;
  virtual void Add(JudgeTask task) = 0;
  // First looks at candidates that build to this artifact end as `known`.
  virtual void Know(const std::string& artifact) = 0;
  // First looks give up what is shown not to exceed this speedup.
  virtual void Race(double bound) = 0;
  // Waits for verdicts, at most this long. Errors: nothing can be judged here.
  virtual Result<std::vector<JudgedTask>> Wait(int timeout_ms) = 0;
  // Ends all work; returns the verdicts that still came.
  virtual std::vector<JudgedTask> Stop() = 0;
  // Candidates that are judged at one moment; all others that were added wait.
  virtual size_t judged_at_once() const = 0;
};

struct Proposed {
  std::string key;
  Result<Answer> answer;
};

class AnswerSource {
 public:
  virtual ~AnswerSource() = default;
  // Refuses a prompt that must not be recorded (Proposer::Check).
  virtual Result<void> Check(const Prompt& /*prompt*/) const { return {}; }
  virtual void Add(const Prompt& prompt) = 0;
  // True while an answer was not taken.
  virtual bool busy() const = 0;
  // Waits until there is something to take, at most this long. False: there is nothing.
  virtual bool Await(int timeout_ms) = 0;
  virtual std::vector<Proposed> Take() = 0;
  // The most that an answer can cost.
  virtual Usage Reservation(const Prompt& prompt) const = 0;
  // True: a lost answer costs nothing, and comes again.
  virtual bool IsFree() const = 0;
  // Prompts that are answered at one moment.
  virtual size_t asked_at_once() const = 0;
};

}  // namespace assay
