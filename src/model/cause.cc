#include "model/cause.h"

#include "model/named.h"

namespace assay {
namespace {

constexpr std::array<Named<Cause>, 5> kCauses{{
    {Cause::kNone, ""},
    {Cause::kLongCalls, "long_calls"},
    {Cause::kBlindProblem, "blind_problem"},
    {Cause::kMemoryLimit, "memory_limit"},
    {Cause::kScarceMemory, "scarce_memory"},
}};

constexpr std::array<Named<UnsettledCause>, 10> kUnsettledCauses{{
    {UnsettledCause::kNoise, "noise"},
    {UnsettledCause::kDisturbed, "disturbed"},
    {UnsettledCause::kBudget, "budget"},
    {UnsettledCause::kCharges, "charges"},
    {UnsettledCause::kCopies, "copies"},
    {UnsettledCause::kBlocks, "blocks"},
    {UnsettledCause::kMemory, "memory"},
    {UnsettledCause::kAlone, "alone"},
    {UnsettledCause::kLibraries, "libraries"},
    {UnsettledCause::kUnseen, "unseen"},
}};

constexpr std::array<Named<Mistake>, 31> kMistakes{{
    {Mistake::kNone, ""},
    {Mistake::kUnusualValues, "unusual values alone"},
    {Mistake::kLargeOffsets, "large offsets alone"},
    {Mistake::kWideRange, "wide range alone"},
    {Mistake::kTinyValues, "tiny values alone"},
    {Mistake::kHugeValues, "huge values alone"},
    {Mistake::kSignedZeros, "signed zeros alone"},
    {Mistake::kTies, "ties alone"},
    {Mistake::kSmallIntegers, "small integers alone"},
    {Mistake::kZerosAndOnes, "0 and 1 alone"},
    {Mistake::kOutliers, "outliers alone"},
    {Mistake::kSpecialValues, "NaN or infinity alone"},
    {Mistake::kBothSigns, "values of both signs alone"},
    {Mistake::kOtherSize, "another size"},
    {Mistake::kStrayWrite, "wrote out of bounds"},
    {Mistake::kRunToRun, "differs from run to run"},
    {Mistake::kLaterCall, "a later call"},
    {Mistake::kNotWritten, "not written"},
    {Mistake::kCopiedInput, "input copied through"},
    {Mistake::kInputStays, "input not changed in place"},
    {Mistake::kNanOrInfinity, "NaN or infinity"},
    {Mistake::kOneValue, "one value everywhere"},
    {Mistake::kZeros, "zeros"},
    {Mistake::kMisplaced, "misplaced elements"},
    {Mistake::kPart, "part of the output"},
    {Mistake::kFactor, "factor, constant or sign"},
    {Mistake::kPrecision, "precision"},
    {Mistake::kScattered, "scattered elements"},
    {Mistake::kIndices, "indices"},
    {Mistake::kState, "state"},
    {Mistake::kOther, "other values"},
}};

}  // namespace

std::string_view CauseName(Cause cause) { return NameIn(kCauses, cause); }
std::optional<Cause> CauseFromName(std::string_view name) { return CodeIn(kCauses, name); }

std::string_view UnsettledCauseName(UnsettledCause cause) {
  return NameIn(kUnsettledCauses, cause);
}
std::optional<UnsettledCause> UnsettledCauseFromName(std::string_view name) {
  return CodeIn(kUnsettledCauses, name);
}

std::string_view MistakeName(Mistake mistake) { return NameIn(kMistakes, mistake); }
std::optional<Mistake> MistakeFromName(std::string_view name) { return CodeIn(kMistakes, name); }

bool IsOfUnusualValues(Mistake mistake) {
  return mistake >= Mistake::kUnusualValues && mistake <= Mistake::kBothSigns;
}

}  // namespace assay
