// FlashInfer's definitions, workloads and solutions, and the Python files that are made of them.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"

namespace assay {

// The problem of one workload. `root`: the folder that paths of stored tensors are relative to.
// Errors (kUsage): an axis without a value, inputs that cannot be made here.
Result<std::string> FlashInferProblem(const nlohmann::ordered_json& definition,
                                      const nlohmann::ordered_json& workload,
                                      const std::filesystem::path& root);

// The candidate of a solution. Errors (kUsage): a language or a binding that is not supported.
Result<std::string> FlashInferCandidate(const nlohmann::ordered_json& definition,
                                        const nlohmann::ordered_json& solution);

}  // namespace assay
