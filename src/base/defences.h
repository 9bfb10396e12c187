// The judge's defences by name, so that a test can take one away and show that an exploit then
// succeeds. In every program that people use all of them stand: `Stands` is the constant true, and
// a program that is told to weaken one refuses to run. Only the test program `assay-weakened` links
// the other definition, which reads ASSAY_WEAKEN.
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
  kErrorBounds,     // errors are held against float64, not within a fixed tolerance
  kRaggedSizes,     // gate 1 tries other sizes, too
  kRandomWeights,   // parameters that are all ones or zeros get random values
  kVaryingWeights,  // weights change from block to block
  kFreeze,          // hosts are stopped between blocks
  kWaitingHosts,    // hosts that wait for their turn are stopped, too
  kSleepProof,      // a host that used CPU time while it was stopped is caught
  kHeadStart,       // what a host computes before it says that it is awake counts
  kLongBlocks,      // blocks that turn out short are run again with more calls
  kTimedDraws,      // unusual values come in timed blocks, too
  kLateWrites,      // outputs must not change once the clock has stopped
  kReadOnlyInputs,  // inputs and weights cannot be written
  kSteps,           // calls one at a time must be as fast as many in a row
  kLockdown,        // a host gives up starting processes before foreign code runs
  kDegenerate,      // a problem that zeros or a constant solve has no winner
  kLeftResults,     // what python hosts give is read where it lies: no copy can be saved
  kLibraries,       // time spent in foreign libraries is seen
};

// All of them, in order, as ASSAY_WEAKEN and the tests call them: "poison", "guards"...
const std::vector<std::pair<Defence, std::string_view>>& DefenceNames();

bool Stands(Defence defence);

// Why this program must not run: ASSAY_WEAKEN is set, and either this program cannot be weakened or
// the name is not known. nullopt: all is well.
std::optional<std::string> RefusalToWeaken();

}  // namespace assay
