// The hosts of a session: those of candidates begin to start before they are needed
// (session/host_plan.h), reference hosts stay warm from one candidate to the next, and where the
// device's memory is short they make room for each other.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "correctness/other_size.h"
#include "session/workbench.h"
#include "sides/candidate_hosts.h"
#include "sides/ending_hosts.h"
#include "sides/reference_pool.h"

namespace assay {

// A candidate's hosts, by what they are for.
struct HostsOfCandidate {
  CandidateHosts correctness, pairs;
  std::optional<CandidateHosts> other_size;
};

class HostSchedule {
 public:
  explicit HostSchedule(const Workbench& bench) : bench_(bench) {}

  // The first pairs' opponents begin to start, where they did not.
  Result<void> BeginOpponents();
  // The oracle and the live slots are there: reference hosts load what they will run.
  void MeetOracle();
  // A batch is judged; what is given stays until EndBatch().
  void BeginBatch(std::span<const BuiltCandidate> candidates, const OtherSize* other_size,
                  bool correctness_only);
  void EndBatch();

  // Candidate `index` begins: its hosts, and those of some after it, begin to start.
  std::unique_ptr<HostsOfCandidate> Begin(size_t index);
  // Whether the candidate in hand came as far as being timed: then the next one may.
  void set_expects_speed(bool expects) { expects_speed_ = expects; }
  bool expects_speed() const { return expects_speed_; }
  // Nothing runs beside a measurement: waits for imports of candidates to come.
  void AwaitImports();
  bool any_ahead() const { return !ahead_.empty(); }

  // Hosts start one by one, each when it is needed.
  void set_alone(bool alone) { alone_ = alone; }
  bool alone() const { return alone_; }
  // Whether the device has memory for few hosts, even once those that wait for later have ended.
  bool HoldsFewHosts();
  void EndWaitingHosts();
  // Drops hosts that failed, or that have half of what they need.
  void DropAll();

  // How many pairs' hosts start side by side, with this one's.
  int PairsComing(int pair_index) const;
  // Hosts of this and the following pairs begin to start, on a device.
  HostResult<void> BeginPairs(int pair_index, CandidateHosts& hosts, const std::string& baseline,
                              bool opponent_leaves);
  // Where hosts start one by one: those that are warm, but for this pair's, give back what the
  // candidate may want.
  void EndWarmReferences(const std::string& baseline, int pair_index);
  ReferencePool& Pool(const std::string& baseline);
  void DropPool(const std::string& baseline) { pools_.erase(baseline); }

  CandidateHostSetup SetupOf(const BuiltCandidate& candidate) const;
  EndingHosts& ending() { return ending_; }

 private:
  std::unique_ptr<HostsOfCandidate> Make(const BuiltCandidate& candidate) const;

  const Workbench& bench_;
  std::map<std::string, std::unique_ptr<ReferencePool>> pools_;  // by baseline
  std::span<const BuiltCandidate> candidates_;
  const OtherSize* other_size_ = nullptr;
  bool correctness_only_ = false;
  std::map<size_t, std::unique_ptr<HostsOfCandidate>> ahead_;  // of candidates to come
  bool expects_speed_ = true;
  bool alone_ = false;
  EndingHosts ending_;  // on a device
};

}  // namespace assay
