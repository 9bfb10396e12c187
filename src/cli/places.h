// The devices that --devices names.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "worker_client/fleet.h"

namespace assay {

// cpu, or GPUs as cuda:0; all of one kind. None: the first GPU, where there is one, or the CPU.
Result<std::vector<WorkerPlace>> PlacesOf(const std::vector<std::string>& devices);

}  // namespace assay
