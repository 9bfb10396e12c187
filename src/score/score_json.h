// A score as JSON text, schema assay.score/1 (docs/score.schema.json). Pure.
#pragma once

#include <string>
#include <string_view>

#include "score/score.h"

namespace assay {

inline constexpr std::string_view kScoreSchema = "assay.score/1";

// One indented JSON document without a newline at its end. `skipped`: what could not be read, a
// line each.
std::string ScoreToJson(const Score& score, const std::vector<std::string>& skipped);

}  // namespace assay
