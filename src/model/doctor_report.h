// The doctor's findings about a machine (doctor/doctor.h makes them).
#pragma once

#include <string>
#include <vector>

#include "model/machine_profile.h"

namespace assay {

// A clear margin is this factor over the widest pair seen: more pairs would show wider ones.
inline constexpr double kNoiseMarginFactor = 1.5;

struct Topology {
  int packages = 0;
  int cores = 0;                   // physical ones
  int threads = 0;                 // hardware threads
  std::vector<CacheLevel> caches;  // data and unified, innermost first
};

struct DoctorFinding {
  enum class State {
    kGood,
    kLimited,  // judging works, within limits
    kMissing,  // judging does not work without it
  };
  State state = State::kGood;
  std::string name;   // "sandbox"
  std::string found;  // what is present or missing
  std::string mend;   // the command that mends it; empty: there is none, or `found` says it
};

struct DoctorReport {
  std::vector<DoctorFinding> findings;
  Topology topology;
  MachineProfile profile;  // measured now; empty parts were not
};

}  // namespace assay
