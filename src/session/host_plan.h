// Plans the early start of candidates' hosts: importing PyTorch takes a second of one core, and
// every candidate needs the correctness gate. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "rules/pair_budget.h"

namespace assay {

enum class HostUse { kCorrectness, kOtherSize, kPairs };

// Hosts of one candidate for one use, for `count` pairs from `first_pair` on.
struct HostsToBegin {
  size_t candidate = 0;
  HostUse use = HostUse::kCorrectness;
  int first_pair = 0;
  int count = 1;

  bool operator==(const HostsToBegin&) const = default;
};

// The facts at the start of a candidate's turn.
struct HostPlanFacts {
  bool on_device = false;
  bool alone = false;    // memory is short: hosts start only when needed
  bool imports = false;  // the present candidate is in Python
  bool has_other_size = false;
  bool expects_speed = false;  // the previous candidate was timed
  bool correctness_only = false;
  size_t usable_cores = 1;
};

// With at least this many cores, opponents and hosts of several later candidates import PyTorch
// beside the oracle.
inline constexpr size_t kManyCores = 12;

// Returns the hosts to begin with candidate `index`: its own, then those of later candidates that
// are built (`built[i]`). The caller leaves out those that have begun.
std::vector<HostsToBegin> PlanHosts(const HostPlanFacts& facts, size_t index,
                                    std::span<const bool> built);

}  // namespace assay
