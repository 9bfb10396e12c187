// The roofline: the speed that a machine's measured ceilings allow for a problem, and the share of
// it that a time reaches. Pure. After S. Williams, A. Waterman, D. Patterson, "Roofline: an
// insightful visual performance model", CACM 52(4), 2009, with the time of an empty call as a third
// bound.
#pragma once

#include <optional>

#include "model/machine_profile.h"
#include "model/verdict.h"

namespace assay {

struct MeasuredTimes {
  double candidate_ns = 0;  // of one call
  double reference_ns = 0;
  bool python_candidate = false;  // its empty call takes longer than a native one's
  bool replayed = false;          // as CUDA graphs: no call pays for a launch
  // These times include copying results into the judge's slots.
  bool candidate_copies = false, reference_copies = false;
};

// Returns nullopt if the profile has no ceilings.
std::optional<Roofline> MakeRoofline(const Work& work, bool float64, const MachineProfile& profile,
                                     int threads, const MeasuredTimes& times);

// Decides which of a GPU's units can do a problem's arithmetic.
struct GpuDemand {
  std::string dtype;           // of the problem: "float32"
  std::string required_class;  // that a candidate must meet: "tf32"; empty: the dtype's own
  double matrix_share = 0;     // of the problem's operations, in matrix products
};

// Returns the roofline on a GPU. Matrix products run at the matrix units' rate where dtype and
// class allow it, all else at the ordinary units'; the units that need longer give the rate.
std::optional<Roofline> MakeGpuRoofline(const Work& work, const GpuDemand& demand,
                                        const GpuCeilings& gpu, const MeasuredTimes& times);

// Returns the bound alone, for a problem without measured times: percentages stay 0.
std::optional<Roofline> MakeBound(const Work& work, bool float64, const MachineProfile& profile,
                                  int threads, bool python_candidate);

}  // namespace assay
