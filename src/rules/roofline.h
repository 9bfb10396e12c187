// The roofline: what the measured ceilings of a machine allow for a problem, and which share of
// that a time reaches. Pure. After S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful
// visual performance model", CACM 52(4), 2009, with the time of an empty call as a third bound.
#pragma once

#include <optional>

#include "model/machine_profile.h"
#include "model/verdict.h"

namespace assay {

struct MeasuredTimes {
  double candidate_ns = 0;  // of one call
  double reference_ns = 0;
  bool python_candidate = false;  // its empty call is dearer than a native one's
  bool replayed = false;          // as CUDA graphs: no call pays for a launch
  // Results are copied into the judge's slots within these times.
  bool candidate_copies = false, reference_copies = false;
};

// Nothing where the profile has no ceilings.
std::optional<Roofline> MakeRoofline(const Work& work, bool float64, const MachineProfile& profile,
                                     int threads, const MeasuredTimes& times);

// What of a problem's arithmetic a GPU can do where.
struct GpuDemand {
  std::string dtype;           // of the problem: "float32"
  std::string required_class;  // that a candidate must meet: "tf32"; empty: the dtype's own
  double matrix_share = 0;     // of its operations, in matrix products
};

// The same on a GPU. The rate is that of the kind of units which needs longer: matrix products take
// the matrix units' where dtype and class allow those, all else the ordinary units'.
std::optional<Roofline> MakeGpuRoofline(const Work& work, const GpuDemand& demand,
                                        const GpuCeilings& gpu, const MeasuredTimes& times);

// The bound alone, for a problem that nobody has timed: percentages stay 0.
std::optional<Roofline> MakeBound(const Work& work, bool float64, const MachineProfile& profile,
                                  int threads, bool python_candidate);

}  // namespace assay
