// The judge's defences by name. A test takes one away and shows that an exploit then succeeds.
// Every program that people use has all of them: `Stands` returns true, and the program refuses to
// run if ASSAY_WEAKEN is set. Only the test program `assay-weakened` links another definition,
// which reads ASSAY_WEAKEN.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

enum class Defence {
  kPoison,          // outputs hold NaN patterns before each block
  kGuards,          // guard bytes and uncalled slots are compared after each block
  kTimedChecks,     // every output of every timed call is compared
  kFreshValues,     // no call sees values that its process has seen
  kVariedDraws,     // gate 1 draws unusual values, too
  kErrorBounds,     // errors are measured against float64, not held to a fixed tolerance
  kRaggedSizes,     // gate 1 tries other sizes, too
  kRandomWeights,   // parameters that are all ones or zeros get random values
  kVaryingWeights,  // each call has weights with values of its own
  kFreeze,          // hosts are stopped between blocks
  kWaitingHosts,    // hosts that wait for their turn are stopped, too
  kSleepProof,      // a host that uses CPU time while it is stopped is caught
  kHeadStart,       // computing before the host says `ready` is charged to it
  kLongBlocks,      // blocks that are too short run again with more calls
  kTimedDraws,      // unusual values come in timed blocks, too
  kLateWrites,      // outputs must not change once the clock has stopped
  kReadOnlyInputs,  // inputs and weights cannot be written
  kSteps,           // calls one at a time must be as fast as many in a row
  kLockdown,        // a host gives up starting processes before foreign code runs
  kDegenerate,      // a problem that zeros or a constant solve has no winner
  kLeftResults,     // the judge reads python results where they lie: no host can skip a copy
  kLibraries,       // time spent in foreign libraries is noticed
};

// All defences in order, with the names that ASSAY_WEAKEN and the tests use: "poison", "guards"...
const std::vector<std::pair<Defence, std::string_view>>& DefenceNames();

// Returns true if the defence is in force.
bool Stands(Defence defence);

// Returns a message if this program must not run: ASSAY_WEAKEN is set, and this program cannot be
// weakened or does not know the name. nullopt: it may run.
std::optional<std::string> RefusalToWeaken();

}  // namespace assay
