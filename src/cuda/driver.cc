#include "cuda/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

namespace assay::cuda {
namespace {

bool Fail(char* why, size_t why_bytes, const char* text, const char* detail) {
  if (why != nullptr && why_bytes > 0) snprintf(why, why_bytes, "%s%s", text, detail);
  return false;
}

}  // namespace

void Driver::Describe(Result result, char* text, size_t text_bytes) const {
  const char* name = nullptr;
  const char* words = nullptr;
  if (error_name == nullptr || error_name(result, &name) != kSuccess || name == nullptr)
    name = "CUDA error";
  if (error_text == nullptr || error_text(result, &words) != kSuccess || words == nullptr)
    words = "without a description";
  snprintf(text, text_bytes, "%s (%d): %s", name, static_cast<int>(result), words);
}

bool OpenDriver(Driver* driver, const char* library, char* why, size_t why_bytes, bool* missing) {
  void* handle = dlopen(library == nullptr ? "libcuda.so.1" : library, RTLD_NOW | RTLD_LOCAL);
  if (missing != nullptr) *missing = handle == nullptr;
  if (handle == nullptr) return Fail(why, why_bytes, "no CUDA driver: ", dlerror());
  Driver found;
#define ASSAY_CUDA_FIND(member, symbol, parameters)                               \
  found.member = reinterpret_cast<decltype(found.member)>(dlsym(handle, symbol)); \
  if (found.member == nullptr)                                                    \
    return Fail(why, why_bytes,                                                   \
                "the CUDA driver is too old (12.4 or newer is needed): it has no ", symbol);
  ASSAY_CUDA_FUNCTIONS(ASSAY_CUDA_FIND)
#undef ASSAY_CUDA_FIND
  *driver = found;
  return true;
}

}  // namespace assay::cuda
