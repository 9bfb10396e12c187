// Reads the cores and caches of this machine, by hwloc.
#pragma once

#include "model/doctor_report.h"

namespace assay {

// Zeros if hwloc finds nothing.
Topology ReadTopology();

}  // namespace assay
