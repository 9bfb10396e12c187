// Verdict <-> JSON text, schema assay.verdict/1 (docs/verdict.schema.json).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/verdict.h"

namespace assay {

inline constexpr std::string_view kVerdictSchema = "assay.verdict/1";

// Returns one JSON document without a final newline; indent < 0: on one line. Non-finite numbers
// become null.
std::string VerdictToJson(const Verdict& verdict, int indent);
// Errors (kUsage): not JSON, another schema, a field missing or of the wrong type; names the field.
Result<Verdict> VerdictFromJson(std::string_view text);

// The same for the member `coverage` alone, on one line. CoverageFromJson returns nullopt for any
// other text.
std::string CoverageToJson(const OperatorCoverage& coverage);
std::optional<OperatorCoverage> CoverageFromJson(std::string_view text);

}  // namespace assay
