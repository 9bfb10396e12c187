// One call of the judge: what it is made of, and how its parts follow one another. judge.cc has
// the call as a whole, judgement_gates.cc the gates that a candidate passes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "correctness/draw_set.h"
#include "correctness/gate1_run.h"
#include "correctness/other_size.h"
#include "correctness/size_run.h"
#include "machine/side_by_side.h"
#include "session/judge.h"
#include "sides/candidate_hosts.h"
#include "sides/ending_hosts.h"
#include "sides/reference_pool.h"
#include "speed/gate2_run.h"
#include "values/oracle.h"
#include "values/value_pool.h"

namespace assay {

class Judgement {
 public:
  Judgement(const JudgeRequest& request, const JudgeEvents& events)
      : request_(request), events_(events) {}
  Result<void> Run();

 private:
  Result<void> Prepare();
  // Prepares, and builds all candidates beside that.
  Result<void> Build();
  // The first pairs' opponents begin to start, where they did not.
  Result<void> BeginOpponents();
  // A candidate's hosts, by what they are for: they begin to start before they are needed.
  struct HostsOf {
    CandidateHosts gate1, pairs;
    std::optional<CandidateHosts> other_size;
  };
  // The first candidate that is the same file as this one, which is built once: this one, often.
  size_t SameAs(size_t index) const;
  std::unique_ptr<HostsOf> MakeHosts(const BuiltCandidate& candidate) const;
  // The hosts of a candidate that begins, and those of some after it begin.
  std::unique_ptr<HostsOf> BeginHosts(size_t index);
  Result<Verdict> JudgeOne(size_t index);
  // The same; where the device's memory was short before it was timed, once more with no other host
  // of the judge's beside those that work, and so at once where few fit.
  Result<Verdict> JudgeWithRoom(size_t index);
  // Whether the judge's own hosts lacked memory before the candidate was timed, which had not taken
  // it.
  bool LackedMemoryEarly(const Error& error);
  // What is said of a candidate that had taken the device's memory, once its processes are gone.
  std::optional<std::string> MemoryTaken() const;
  // Whether the device has memory for few hosts, even once those that wait for later have ended.
  bool HoldsFewHosts();
  void EndWaitingHosts();
  // The verdict where the trouble that ended a judgement is that the candidate had taken the
  // device's memory; else the error.
  Result<Verdict> ForWantOfMemory(size_t index, const Error& error);
  // What was compiled for the device is disassembled beside what comes before anything is timed.
  void BeginListings();
  // The records of the candidate's kernels, for which its listing is waited for.
  Result<void> AddKernels(size_t index, Verdict* verdict);
  // Whether the device still answers, after a candidate that was killed on it.
  Result<void> CheckDevice(const Verdict& verdict);
  // What tools see of the candidate, where it was asked for (judgement_tools.cc). Errors: the
  // device does not answer any more, kInterrupted; what a tool fails at is in the verdict.
  Result<void> AddToolFacts(size_t index, Verdict* verdict);
  void AddProfile(const BuiltCandidate& candidate, Verdict* verdict);
  void AddSanitizer(const BuiltCandidate& candidate, Verdict* verdict);
  // One call of the candidate in a host under the tool, which then ends.
  HostResult<HostLegacy> RunUnderTool(const BuiltCandidate& candidate, const HostTool& tool);
  // Each returns true when the verdict is final.
  Result<bool> PassGate1(const BuiltCandidate& candidate, HostsOf& hosts, Verdict* verdict);
  Result<bool> PassOtherSize(HostsOf& hosts, Verdict* verdict);
  // Of a call that did not pass.
  void SayWhatFailed(const Gate1Result& result, Verdict* verdict);
  SizeRunTerms Terms();
  // How many pairs' hosts start side by side, with this one's.
  int PairsComing(int pair_index) const;
  // Where hosts start one by one: those that are warm, but for this pair's, give back what the
  // candidate may want.
  void EndWarmReferences(const std::string& baseline, int pair_index);
  // Hosts of this and the following pairs begin to start, on a device.
  HostResult<void> BeginPairs(int pair_index, CandidateHosts& hosts, const std::string& baseline,
                              bool opponent_leaves);
  Result<bool> PassGate2(const BuiltCandidate& candidate, CandidateHosts& hosts,
                         const std::string& baseline, Verdict* verdict);
  void ShowProgress(Gate2Setup* setup) const;
  // Gate 2 against all that are asked for.
  Result<bool> PassBaselines(const BuiltCandidate& candidate, CandidateHosts& hosts,
                             Verdict* verdict);
  CandidateHostSetup HostSetup(const BuiltCandidate& candidate) const;
  const Gpu* gpu() const { return device_ ? &device_->gpu() : nullptr; }
  ReferencePool& Pool(const std::string& baseline);
  void Settle(Verdict* verdict) const;
  void Progress(const std::string& stage, double fraction) const {
    events_.progress(stage + label_, fraction);
  }

  using Listings = SideBySide<std::string, Result<std::map<std::string, InstructionMix>>>;
  const JudgeRequest& request_;
  const JudgeEvents& events_;
  std::string label_;
  uint64_t seed_ = 0;
  int threads_ = 1;
  PythonRuntime python_;
  std::string settings_;
  OracleOptions oracle_options_;
  std::optional<Oracle> oracle_;
  std::unique_ptr<OtherSize> other_size_;  // null where the problem has one size
  std::unique_ptr<JudgeDevice> device_;    // null: judged on the CPU
  std::optional<LiveSlots> live_;
  std::optional<DrawSet> draws_;
  std::optional<ValuePool> values_;
  CompareRule rule_;
  std::string tolerance_;
  std::map<std::string, std::unique_ptr<ReferencePool>> pools_;
  std::vector<BuiltCandidate> built_;
  std::map<size_t, std::unique_ptr<HostsOf>> hosts_ahead_;  // of candidates after the one in hand
  bool expects_gate2_ = true;                               // the one before came so far
  std::optional<BuiltCandidate> against_;
  double host_start_s_ = 0;       // what the oracle's took
  double candidate_call_ns_ = 0;  // of the candidate in hand, from gate 1
  // The candidate in hand, or a second reference that was asked about it, lacked memory before it
  // was timed.
  bool wants_room_ = false;
  bool starts_alone_ = false;           // no host starts before it is needed
  bool baseline_failed_ = false;        // in the gate 2 that ended last
  bool tool_trouble_ = false;           // a host under a tool failed
  EndingHosts ending_;                  // on a device
  std::unique_ptr<Listings> listings_;  // of artifacts in built_, on a device
};

}  // namespace assay
