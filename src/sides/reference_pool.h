// Warm reference hosts for one baseline, kept across candidates: importing PyTorch is paid once a
// host. Each pair of a verdict has a host of its own, so that no process's luck counts twice;
// beyond the pool's size a host is started anew.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hosts/device_access.h"
#include "sides/live_host.h"

namespace assay {

class ReferencePool {
 public:
  struct Options {
    ProblemRequest problem;
    PythonRuntime python;
    int threads = 1;
    uint64_t weights_seed = 0;
    std::string baseline = "eager";
    int hosts_max = 9;         // kept warm for later candidates; some 250 MB each
    const Gpu* gpu = nullptr;  // where they run; null: on the CPU
    DeviceQueues queues = DeviceQueues::kByDefault;
    StopToken stop;
    bool forks = false;  // hosts come from nurseries
  };
  // Ends all hosts, side by side.
  ~ReferencePool();
  ReferencePool(const ReferencePool&) = delete;
  ReferencePool& operator=(const ReferencePool&) = delete;
  // As many hosts as the second look takes, where memory is plentiful.
  static int WarmHostsMax();
  explicit ReferencePool(Options options)
      : options_(std::move(options)),
        entries_(static_cast<size_t>(options_.hosts_max)),
        on_the_candidates_way_(options_.baseline == "eager") {}

  // What the hosts load and work on; both must stay. Before this there is no Get().
  void Meet(const Oracle& oracle, const LiveSlots& live);

  // Starts the nurseries of these pairs' hosts, on a device.
  Result<void> StartNurseries(int first_pair_index, int end_pair_index) const;

  // The host of this pair, in blocks and frozen, with as many slots prepared as the live plan has
  // now. Where it is not there yet, the hosts of this and the following `pairs_coming` - 1 pairs
  // start side by side, as far as the device's memory goes: PyTorch's import uses one core.
  // `leaves`: its results stay where forward puts them.
  HostResult<LiveHost*> Get(int pair_index, int pairs_coming, bool leaves);
  // Returns true if Get() starts no host for this pair.
  bool HasLoaded(int pair_index) { return Serves(pair_index) && At(pair_index).loaded; }
  // As CandidateHosts::TakesLong(), of Get().
  bool TakesLong(int pair_index) {
    return !HasLoaded(pair_index) || enter_s_ > kEnterBesideOthersS;
  }
  // Lets the hosts of `count` pairs begin to import PyTorch, which needs no oracle; Get() waits for
  // them. `leaves` as there. `imports_only`: a device has room for one pair, and the others' hosts
  // wait without it.
  HostResult<void> Prefetch(int first_pair_index, int count, bool leaves,
                            bool imports_only = false);
  // Waits until those that began have imported it. One that failed to is dropped.
  void AwaitImports();
  // Returns those that have imported it, and were not told yet to start CUDA; tell them now.
  std::vector<Host*> Imported();
  // Has the hosts of these pairs load, as Get() would. What fails is told by Get().
  void Prepare(int pair_index, int pairs_coming, bool leaves);
  // Ends warm hosts where the device has little memory left, but for that of this pair.
  void MakeRoom(int pair_index);
  // Ends all but this pair's, and those that wait without the device.
  void KeepOnly(int pair_index);
  // Pairs whose hosts are there.
  int size() const;

 private:
  struct Entry {
    std::unique_ptr<LiveHost> host;
    bool greeted = false, device_starts = false, loaded = false;
    int pair_index = -1;
  };
  // Where the host of a pair is kept, or was. Pairs beyond the pool's size take the place of
  // earlier ones.
  Entry& At(int pair_index) { return entries_[static_cast<size_t>(pair_index) % entries_.size()]; }
  bool Serves(int pair_index);
  // Hosts of how many pairs start side by side.
  int AtATime(int wanted, bool ahead, bool leaves) const;
  HostResult<void> Spawn(int pair_index);
  HostResult<void> Load(int first_pair_index, int count);
  HostResult<void> Attach(LiveHost& host) const;
  HostResult<void> LendResults(LiveHost& host) const;
  static std::vector<Host*> Imported(const std::vector<Entry*>& entries);
  // It has imported PyTorch, and nothing on the device is its.
  static bool Waits(const Entry& entry);
  static void GreetAll(const std::vector<Entry*>& entries);
  HostResult<void> BeginLoading(Entry& entry) const;
  HostResult<void> PostLoad(LiveHost& host) const;
  // On the candidate's way: waits until hosts have constructed the problem's module, while other
  // judges may measure, and has them load the rest. Returns what became of each.
  HostResult<std::vector<HostResult<void>>> LoadRest(const std::vector<Entry*>& entries) const;
  HostResult<void> BeginOrRestart(Entry& entry);
  HostResult<void> Finish(LiveHost& host) const;

  Options options_;
  const Oracle* oracle_ = nullptr;
  const LiveSlots* live_ = nullptr;
  std::vector<Entry> entries_;
  double enter_s_ = 0;
  // Whether hosts load the problem just as a candidate is loaded: otherwise the processes differ,
  // and a program is a percent faster than itself (docs/measurement.md). What cannot go that way
  // is loaded as the oracle loads it: a compiled baseline, and a problem whose init inputs cannot
  // be handed over or whose parameters are not there until forward has run.
  bool on_the_candidates_way_;
};

}  // namespace assay
