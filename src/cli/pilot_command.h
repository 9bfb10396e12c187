// assay worker --queue: the pilot of a node.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"

namespace assay {

int RunPilot(const WorkerCommandOptions& options);

// The options of the worker process that a runner or a pilot drives.
std::vector<std::string> WorkerArguments(const WorkerCommandOptions& options);

}  // namespace assay
