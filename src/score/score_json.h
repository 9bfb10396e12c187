// A score as JSON text, schema assay.score/1 (docs/score.schema.json). Pure.
#pragma once

#include <string>
#include <string_view>

#include "score/score.h"

namespace assay {

inline constexpr std::string_view kScoreSchema = "assay.score/1";

// Returns one indented JSON document without a newline at its end. `skipped`: a line for each thing
// that could not be read.
std::string ScoreToJson(const Score& score, const std::vector<std::string>& skipped);

}  // namespace assay
