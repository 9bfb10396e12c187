// The same problem at another size, drawn from the ranges that its suite allows. It exposes kernels
// that are right at one size alone. Only gate 1 uses it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "correctness/gate1_run.h"
#include "values/live_slots.h"
#include "values/oracle.h"

namespace assay {

struct OtherSize {
  OracleOptions options;  // of a reference at that size
  std::string settings;   // of its candidate hosts
  std::string text;       // "ROWS = 3, COLUMNS = 517"
  CompareRule rule;
  Oracle oracle;  // its draws are made; its host has loaded another size since
  LiveSlots live;
  DrawSet draws;
};

// Returns the problem's constants, with those of its ranges drawn anew; empty if it has no ranges.
std::map<std::string, std::string> DrawSizes(const ProblemRequest& problem, uint64_t seed);

// Loads the problem at another size, `set` from DrawSizes, into a host from StartOracleHost, and
// makes its draws. Returns nullptr if `set` is empty or the reference cannot be judged at that
// size.
Result<std::unique_ptr<OtherSize>> MakeOtherSize(
    OracleOptions options, std::map<std::string, std::string> set, std::shared_ptr<Host> host,
    JudgeDevice* device, const std::function<Result<CompareRule>(const Oracle&)>& rule,
    uint64_t seed, const std::function<void(size_t, size_t)>& progress);

}  // namespace assay
