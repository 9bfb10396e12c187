// Fields of a request to an environment (docs/env.schema.json). Errors (kUsage) name the field.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace assay {

Result<std::string> TextOf(const nlohmann::ordered_json& request, const char* field);

// Errors where a field is not among those that the request knows.
Result<void> CheckFields(const nlohmann::ordered_json& request,
                         const std::vector<std::string>& known);

// A number, or its decimal text, since many writers keep only 53 bits.
Result<uint64_t> SeedOf(const nlohmann::ordered_json& request);

}  // namespace assay
