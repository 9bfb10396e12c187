// The facts behind outcomes and decisions by which programs go on. Messages and notes are for
// people alone: nothing searches them. docs/verdict.md lists the names.
#pragma once

#include <optional>
#include <string_view>

namespace assay {

// A fact behind an outcome, beyond its name.
enum class Cause {
  kNone,
  kLongCalls,     // unsettled: its calls are too long for the time that pairs may take
  kBlindProblem,  // unsettled: the problem cannot tell a kernel from one that computes nothing
  kMemoryLimit,   // out_of_memory: a process reached --memory
  kScarceMemory,  // build_failed: the machine may have had too little memory free
};
std::string_view CauseName(Cause cause);  // "long_calls"...; empty for kNone
std::optional<Cause> CauseFromName(std::string_view name);

// Why a decision is `unsettled`.
enum class UnsettledCause {
  kNoise,      // pairs differ too much
  kDisturbed,  // other processes took the cores
  kBudget,     // --budget ended before a decision
  kCharges,    // it is slower only by time that is charged to it
  kCopies,     // the copies of results weigh more than the difference
  kBlocks,     // its gain comes from a part of its blocks
  kMemory,     // memory holds too few calls
  kAlone,      // calls alone do not show its gain
  kLibraries,  // where its time goes could not be seen
  kUnseen,     // operators that the values do not show take as much time
};
std::string_view UnsettledCauseName(UnsettledCause cause);  // "noise"...
std::optional<UnsettledCause> UnsettledCauseFromName(std::string_view name);

// The kind of a wrong candidate's mistake, as its hint describes it.
enum class Mistake {
  kNone,  // not looked for, or an older verdict
  // Right on ordinary values, and wrong where unusual ones...
  kUnusualValues,  // of any kind
  kLargeOffsets,
  kWideRange,
  kTinyValues,
  kHugeValues,
  kSignedZeros,
  kTies,
  kSmallIntegers,
  kZerosAndOnes,
  kOutliers,
  kSpecialValues,
  kBothSigns,
  // Wrong on ordinary values, too.
  kOtherSize,      // right at the size that was asked for
  kStrayWrite,     // it wrote where it must not
  kRunToRun,       // the same call gives other results
  kLaterCall,      // the first call was right
  kNotWritten,     // the output, or a part of it
  kCopiedInput,    // an input stands in the output
  kInputStays,     // an input is not changed in place
  kNanOrInfinity,  // where they should not be, or not where they should
  kOneValue,       // everywhere
  kZeros,          // where they should not be
  kMisplaced,      // shifted or transposed
  kPart,           // of the output: a boundary, a block, every second row
  kFactor,         // or a constant, or the sign
  kPrecision,
  kScattered,  // few elements
  kIndices,    // other elements are selected
  kState,      // left in the module
  kOther,
};
std::string_view MistakeName(Mistake mistake);  // "ties alone", "precision"...; empty for kNone
std::optional<Mistake> MistakeFromName(std::string_view name);
// True for a candidate that is right on ordinary values.
bool IsOfUnusualValues(Mistake mistake);

}  // namespace assay
