// Starts and ends the hosts of a session. Candidates' hosts start early (session/host_plan.h),
// reference hosts stay warm from one candidate to the next, and hosts make room for each other if
// the device's memory is short.
#pragma once

#include <compare>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "correctness/other_size.h"
#include "session/queue_choice.h"
#include "session/workbench.h"
#include "sides/candidate_hosts.h"
#include "sides/ending_hosts.h"
#include "sides/reference_pool.h"

namespace assay {

// A candidate's hosts, by use.
struct HostsOfCandidate {
  CandidateHosts correctness, pairs;
  std::deque<CandidateHosts> other_sizes;  // beside the batch's
};

// The kind of reference hosts that a candidate is measured beside.
struct ReferenceKind {
  std::string baseline;
  DeviceQueues queues = DeviceQueues::kByDefault;
  auto operator<=>(const ReferenceKind&) const = default;
};

class HostSchedule {
 public:
  explicit HostSchedule(const Workbench& bench) : bench_(bench) {}

  // Returns the queues of both sides' hosts for this candidate. `source`: its source; empty: not
  // known yet.
  DeviceQueues QueuesFor(std::string_view source) const {
    return bench_.on_device() ? QueuesOf(bench_.terms, source) : DeviceQueues::kByDefault;
  }
  // Starts nurseries for the hosts of the first pairs, or of those that follow up to the second
  // look, where there are cores enough for them beside the oracle. Errors: kEnvironment.
  Result<void> StartFirstNurseries();
  Result<void> StartFurtherNurseries();
  // Begins to start the first pairs' opponents, unless they have begun.
  Result<void> BeginOpponents(DeviceQueues queues);
  // Call once oracle and live slots exist: reference hosts load their problem.
  void MeetOracle();
  // Begins a batch. `candidates` and `other_sizes` must stay until EndBatch().
  void BeginBatch(std::span<const BuiltCandidate> candidates, const OtherSizes& other_sizes,
                  bool correctness_only);
  void EndBatch();

  // Begins candidate `index`: begins to start its hosts, and those of some later candidates.
  std::unique_ptr<HostsOfCandidate> Begin(size_t index);
  // On a device: waits until those of the correctness checks have imported PyTorch. Other judges
  // may measure meanwhile. Errors: kInterrupted, kEnvironment.
  Result<void> AwaitFirstImports(HostsOfCandidate& hosts) const;
  // True if the present candidate was timed: then the next one may be, too.
  void set_expects_speed(bool expects) { expects_speed_ = expects; }
  bool expects_speed() const { return expects_speed_; }
  // Waits for imports of later candidates' hosts: nothing may run beside a measurement.
  void AwaitImports();
  bool any_ahead() const { return !ahead_.empty(); }

  // True: hosts start one by one, each when it is needed.
  void set_alone(bool alone) { alone_ = alone; }
  bool alone() const { return alone_; }
  // Returns true if the device's memory holds few hosts, even after waiting hosts have ended. Ends
  // them to find out.
  bool HoldsFewHosts();
  void EndWaitingHosts();
  // Drops all reference hosts and all hosts that started early: they may have failed, or lack some
  // of their memory.
  void DropAll();

  // Returns how many pairs' hosts start side by side, this pair's included.
  int PairsComing(int pair_index) const;
  // Begins to start hosts of this and the following pairs, on a device.
  HostResult<void> BeginPairs(int pair_index, CandidateHosts& hosts, const ReferenceKind& kind,
                              bool opponent_leaves);
  // If hosts start one by one: has those of the pairs until the next decision import PyTorch, both
  // sides' at once. They load in their turn.
  HostResult<void> ImportAhead(int pair_index, CandidateHosts& hosts, const ReferenceKind& kind);
  // Starts the hosts of the first pairs, both sides' at once, and has them load. What fails is told
  // when they are taken.
  void StartPairs(CandidateHosts& hosts, const ReferenceKind& kind, bool opponent_leaves);
  // If hosts start one by one: ends warm reference hosts, except this pair's, so that the candidate
  // can have their memory.
  void EndWarmReferences(const ReferenceKind& kind, int pair_index);
  ReferencePool& Pool(const ReferenceKind& kind);
  void DropPool(const ReferenceKind& kind) { pools_.erase(kind); }

  CandidateHostSetup SetupOf(const BuiltCandidate& candidate, DeviceQueues queues) const;
  EndingHosts& ending() { return ending_; }

 private:
  Result<void> StartNurseries(PairRange pairs);
  std::unique_ptr<HostsOfCandidate> Make(const BuiltCandidate& candidate) const;

  const Workbench& bench_;
  std::map<ReferenceKind, std::unique_ptr<ReferencePool>> pools_;
  std::span<const BuiltCandidate> candidates_;
  std::span<const std::unique_ptr<OtherSize>> other_sizes_;
  bool correctness_only_ = false;
  std::map<size_t, std::unique_ptr<HostsOfCandidate>> ahead_;  // of later candidates, by index
  bool expects_speed_ = true;
  bool alone_ = false;
  EndingHosts ending_;  // on a device
};

}  // namespace assay
