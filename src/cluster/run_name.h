// The name of a run in queues and schedulers: kept in its results folder, so that a controller that
// is started again finds its work and its pilots.
#pragma once

#include <string>

#include "base/result.h"

namespace assay {

inline constexpr const char* kRunNameFile = "cluster.json";

// Makes the name if the folder has none. Errors: kUsage (the file is damaged), kEnvironment.
Result<std::string> RunName(const std::string& folder);

}  // namespace assay
