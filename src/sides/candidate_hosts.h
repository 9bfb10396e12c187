// Fresh hosts for a built candidate.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "builders/build_candidate.h"
#include "hosts/device_access.h"
#include "sides/live_host.h"
#include "values/oracle.h"

namespace assay {

struct HostTool;  // host_tool.h

// What a candidate's hosts are made of; the same for all of them.
struct CandidateHostSetup {
  const BuiltCandidate& candidate;
  const CandidateLimits& limits;
  const PythonRuntime& python;
  const Oracle& oracle;
  const LiveSlots& live;
  const std::string& settings;
  const Gpu* gpu = nullptr;  // null: they do without
  int threads = 1;
  StopToken stop;
  bool poison_heap = false;  // what the heap hands out holds no zeros and no old results
  bool forks = false;        // Python hosts come from nurseries
  DeviceQueues queues = DeviceQueues::kByDefault;
  const HostTool* tool = nullptr;  // that the hosts run under; null: none
};

struct PairRange {
  int first = 0, end = 0;
};

// Starts the nurseries from which hosts of a candidate in Python will come, for these pairs: they
// import PyTorch before there is a candidate. `threads`, `poison_heap`: as those hosts will have.
// Errors: kEnvironment.
Result<void> StartCandidateNurseries(const PythonRuntime& python, const Gpu& gpu, int threads,
                                     bool poison_heap, PairRange pairs);

// Hands out fresh hosts, each with the candidate loaded, in the block loop and frozen. Native hosts
// on the CPU start when they are asked for (10 ms); others several at a time, since importing
// PyTorch takes a second of one core, and starting CUDA a part of one. One that has loaded the
// candidate is stopped until it is taken: it would see the values that are shown to others, and
// disturb them.
class CandidateHosts {
 public:
  static constexpr int kSideBySideMax = 6;
  explicit CandidateHosts(CandidateHostSetup setup) : setup_(setup) {}
  // The host of this pair; `pairs_coming` says how many python hosts may start side by side, this
  // one included. Pairs are asked for in order; the live slots must be those of the blocks to come.
  HostResult<LiveHost> Take(int pair_index, int pairs_coming);
  // Lets the hosts of `count` pairs begin to import PyTorch, or to start CUDA; nothing of the
  // candidate is loaded before Take() asks for them. Does nothing for a native candidate on the
  // CPU, where memory is scarce, and where hosts have begun already. `imports_only`: a device has
  // room for one pair, and the others' hosts wait without it.
  void Prefetch(int first_pair_index, int count, bool imports_only = false);
  // Waits until those have imported it, and sleep. One that failed to is dropped.
  void AwaitImports();
  // Returns true if Take() starts a host, or has one prepare its slots, with a model for each, and
  // the last one took long: others may measure meanwhile.
  bool TakesLong() const { return ready_.empty() || enter_s_ > kEnterBesideOthersS; }
  // Returns those that have imported it, and were not told yet to start CUDA, of the first `most`;
  // tell them now.
  std::vector<Host*> Imported(size_t most = kSideBySideMax);
  // Has the hosts of these pairs load, as Take() would. What fails is told by Take().
  void Prepare(int pair_index, int pairs_coming);
  // Ends those that nobody took.
  void Drop();
  // Seconds since hosts that nobody took yet began to start; 0 where there are none.
  double BegunForS() const;

  bool IsPython() const { return setup_.candidate.source.form == CandidateForm::kPython; }

 private:
  struct Begun {
    LiveHost host;
    bool greeted = false;
    bool device_starts = false;  // it was told to start CUDA
  };
  // PyTorch is imported, or CUDA starts.
  bool StartsSlowly() const { return IsPython() || setup_.gpu != nullptr; }
  // How many of `wanted` hosts start at the same time; `ahead`: of those that load later.
  int SideBySide(int wanted, bool ahead) const;
  HostResult<LiveHost> Spawn(int pair_index) const;
  HostResult<void> AttachImage(Host& host) const;
  // Has a host do the first part of its load, a Python host construct the candidate.
  HostResult<void> Load(Begun& begun) const;
  // Waits until the first `count` hosts have, and has them load the rest. Other judges may measure
  // meanwhile if nothing shows that the candidate would use the device as it is constructed.
  HostResult<void> LoadRest(size_t count);
  void GreetAll();
  double LoadTimeoutS() const;
  HostResult<wire::Frame> CollectLoad(Host& host) const;
  HostResult<void> Finish(LiveHost& host) const;
  HostResult<void> StartBatch(int first_pair_index, int count);

  CandidateHostSetup setup_;
  double enter_s_ = 0;
  int64_t begun_ns_ = 0;     // when Prefetch() began some
  std::deque<Begun> begun_;  // nothing of the candidate is in these
  std::deque<LiveHost> ready_;
};

}  // namespace assay
