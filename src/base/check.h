// CHECK: a condition whose failure is a bug of Assay's own. On in every build; exits with code 70.
#pragma once

namespace assay {

[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);

}  // namespace assay

#define ASSAY_CHECK(condition) \
  (static_cast<bool>(condition) ? void(0) : ::assay::CheckFailed(#condition, __FILE__, __LINE__))
