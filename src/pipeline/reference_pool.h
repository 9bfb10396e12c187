// Warm reference hosts for one baseline, kept across candidates: importing PyTorch is paid once a
// host. Each pair of a verdict has a host of its own, so that no process's luck counts twice;
// beyond the pool's size a host is started anew.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/candidate.h"

namespace assay {

class ReferencePool {
 public:
  struct Options {
    ProblemRequest problem;
    PythonRuntime python;
    int threads = 1;
    uint64_t weights_seed = 0;
    std::string baseline = "eager";
    int hosts_max = 9;
    InterruptFlag interrupt = nullptr;
  };
  ReferencePool(Options options, const Oracle& oracle, const LiveSlots& live)
      : options_(std::move(options)), oracle_(oracle), live_(live) {}

  // The host of this pair, in blocks and frozen, with as many slots prepared as the live plan has
  // now.
  HostResult<LiveHost*> Get(int pair_index);
  // Starts the hosts of the pairs [0, count) that are not there yet, side by side: PyTorch's import
  // uses one core.
  HostResult<void> StartUpTo(int count);
  int size() const { return static_cast<int>(entries_.size()); }

 private:
  struct Entry {
    std::unique_ptr<LiveHost> host;
    uint32_t slot_count = 0;  // prepared; 0: not in blocks
    int pair_index = -1;
  };
  HostResult<std::vector<Entry>> Start(int first_pair_index, int count) const;
  HostResult<std::unique_ptr<LiveHost>> Spawn(int pair_index) const;
  HostResult<void> Finish(LiveHost& host) const;

  Options options_;
  const Oracle& oracle_;
  const LiveSlots& live_;
  std::vector<Entry> entries_;
};

}  // namespace assay
