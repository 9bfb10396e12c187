// Names of accounts: whether one can be told from all others by looking at it. Pure.
#pragma once

#include <string>

#include "base/result.h"

namespace assay {

// Errors (kUsage): it is empty or too long; it has characters that do not show, or that are made to
// look like others; or its letters are of alphabets that look alike (Latin, Greek, Cyrillic).
Result<void> CheckAccountName(const std::string& name);

// Names that look alike have one skeleton: case, letters of other alphabets, and l, I, 1, O, 0 do
// not tell them apart. `name` must have passed CheckAccountName().
std::string SkeletonOfName(const std::string& name);

}  // namespace assay
