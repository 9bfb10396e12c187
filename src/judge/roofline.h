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
};

// Nothing where the profile has no ceilings.
std::optional<Roofline> MakeRoofline(const Work& work, bool float64, const MachineProfile& profile,
                                     int threads, const MeasuredTimes& times);

// The bound alone, for a problem that nobody has timed: percentages stay 0.
std::optional<Roofline> MakeBound(const Work& work, bool float64, const MachineProfile& profile,
                                  int threads, bool python_candidate);

}  // namespace assay
