// The same problem at other sizes, drawn from the ranges that its suite or --ragged allows. They
// expose kernels that are right at one size alone. Only gate 1 uses them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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

using OtherSizes = std::vector<std::unique_ptr<OtherSize>>;

// Returns up to `count` sizes, all different: the problem's constants, with those of its ranges
// drawn anew; none if it has no ranges. They hold what a kernel that is right at round sizes tends
// to miss: an odd number of tiles, a prime, less than a vector, one more or less than a round
// number or the size that was asked for, the ends of a range. The first mixes all of these.
std::vector<std::map<std::string, std::string>> DrawSizes(const ProblemRequest& problem,
                                                          uint64_t seed, size_t count);

// Returns true if calls at one size have other arguments than at another, beside their shapes: a
// native candidate is written for one list of them.
bool HasOtherArguments(const wire::Plan& a, const wire::Plan& b);

// Loads the problem at another size, `set` from DrawSizes, into a host from StartOracleHost, and
// makes its draws. Returns nullptr if the reference cannot be judged at that size; if it was
// `asked` for by the user, that is an error (kUsage), unless memory is too short.
Result<std::unique_ptr<OtherSize>> MakeOtherSize(
    OracleOptions options, std::map<std::string, std::string> set, std::shared_ptr<Host> host,
    JudgeDevice* device, const std::function<Result<CompareRule>(const Oracle&)>& rule,
    uint64_t seed, bool asked, const std::function<void(size_t, size_t)>& progress);

}  // namespace assay
