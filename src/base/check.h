// ASSAY_CHECK(condition): if it fails, Assay has a bug. Active in every build: a failure prints the
// condition and its place to stderr, and exits with code 70.
#pragma once

namespace assay {

[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);

}  // namespace assay

#define ASSAY_CHECK(condition) \
  (static_cast<bool>(condition) ? void(0) : ::assay::CheckFailed(#condition, __FILE__, __LINE__))
