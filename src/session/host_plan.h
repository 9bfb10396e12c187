// Which hosts of candidates begin to start, and when: importing PyTorch takes a second of one core,
// and every candidate needs the correctness gate. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "speed/gate2_run.h"

namespace assay {

enum class HostUse { kCorrectness, kOtherSize, kPairs };

// Hosts of one candidate for one use, from a pair's on.
struct HostsToBegin {
  size_t candidate = 0;
  HostUse use = HostUse::kCorrectness;
  int first_pair = 0;
  int count = 1;

  bool operator==(const HostsToBegin&) const = default;
};

// What is known as a candidate's turn comes.
struct HostPlanFacts {
  bool on_device = false;
  bool alone = false;    // memory is short: no host starts before it is needed
  bool imports = false;  // the candidate in hand is in Python
  bool has_other_size = false;
  bool expects_speed = false;  // the candidate before it came as far as being timed
  bool correctness_only = false;
  size_t usable_cores = 1;
};

// From this many cores on, opponents import PyTorch while the oracle does, and so do hosts of
// several candidates to come.
inline constexpr size_t kManyCores = 12;

// What begins as candidate `index` does: its own hosts, then those of candidates after it that are
// built (`built[i]`). Those that have begun already are the caller's to leave out.
std::vector<HostsToBegin> PlanHosts(const HostPlanFacts& facts, size_t index,
                                    std::span<const bool> built);

}  // namespace assay
