// Compares the state that one call leaves in a module with what the reference's leaves: an update
// that is skipped is work that is skipped.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "rules/gate1.h"
#include "sides/live_host.h"
#include "values/module_state.h"
#include "values/oracle.h"

namespace assay {

struct StateCheck {
  std::string wrong;  // the tensor that differs, and how; empty: none
  std::string note;   // what could not be compared; empty: nothing
};

// Compares the candidate's tensors in `held`, of which `bits` says which it has, with the
// reference's.
StateCheck CompareState(const ModuleState& expected, std::span<const std::byte> held, uint64_t bits,
                        const CompareRule& rule);

// Makes the host leave its blocks, and compares what the call of `slot`, on the draw in `master`,
// left in its module. Errors: trouble of a host.
HostResult<StateCheck> CheckState(Oracle& oracle, LiveHost& host, uint32_t slot, uint32_t master,
                                  const CompareRule& rule, double timeout_s);

}  // namespace assay
