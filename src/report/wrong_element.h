// The values of a verdict's first wrong element as text. Pure; no errors.
#pragma once

#include <string>

#include "model/verdict.h"

namespace assay {

struct ElementTexts {
  std::string expected, got;
};

// Of an integer output all digits; of others `digits` significant ones, and as many as tell two
// different values apart.
ElementTexts TextsOf(const Mismatch& mismatch, int digits);

}  // namespace assay
