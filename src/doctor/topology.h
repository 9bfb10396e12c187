// Reads the cores and caches of this machine, by hwloc.
#pragma once

#include <vector>

#include "model/machine_profile.h"

namespace assay {

struct Topology {
  int packages = 0;
  int cores = 0;                   // physical ones
  int threads = 0;                 // hardware threads
  std::vector<CacheLevel> caches;  // data and unified, innermost first
};

// Zeros if hwloc finds nothing.
Topology ReadTopology();

}  // namespace assay
