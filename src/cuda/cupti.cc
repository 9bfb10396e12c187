#include "cuda/cupti.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace assay::cuda {
namespace {

constexpr int kMode = RTLD_NOW | RTLD_LOCAL;

// dl_iterate_phdr's: ends at the first library of that name; `data` is where its path goes.
int FindLoaded(dl_phdr_info* info, size_t, void* data) {
  const char* path = info->dlpi_name;
  const char* slash = strrchr(path, '/');
  if (strncmp(slash == nullptr ? path : slash + 1, "libcupti.so", strlen("libcupti.so")) != 0)
    return 0;
  *static_cast<const char**>(data) = path;
  return 1;
}

void* OpenAny() {
  const char* loaded = nullptr;
  if (dl_iterate_phdr(FindLoaded, &loaded) == 1) return dlopen(loaded, kMode);
  constexpr const char* kNames[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
  for (const char* name : kNames)
    if (void* handle = dlopen(name, kMode); handle != nullptr) return handle;
  const char* named = getenv("CUDA_HOME");
  const char* const toolkit = named != nullptr ? named : "/usr/local/cuda";
  constexpr const char* kFolders[] = {"extras/CUPTI/lib64", "lib64", "lib"};
  for (const char* folder : kFolders) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s/libcupti.so", toolkit, folder);
    if (void* handle = dlopen(path, kMode); handle != nullptr) return handle;
  }
  return nullptr;
}

}  // namespace

bool OpenCupti(Cupti* cupti, const char* library, char* why, size_t why_bytes) {
  void* handle = library == nullptr ? OpenAny() : dlopen(library, kMode);
  if (handle == nullptr) {
    snprintf(why, why_bytes, "there is no CUPTI (libcupti.so)");
    return false;
  }
  Cupti found;
#define ASSAY_CUPTI_FIND(member, symbol, parameters)                              \
  found.member = reinterpret_cast<decltype(found.member)>(dlsym(handle, symbol)); \
  if (found.member == nullptr) {                                                  \
    snprintf(why, why_bytes, "this CUPTI has no %s", symbol);                     \
    return false;                                                                 \
  }
  ASSAY_CUPTI_FUNCTIONS(ASSAY_CUPTI_FIND)
#undef ASSAY_CUPTI_FIND
  *cupti = found;
  return true;
}

}  // namespace assay::cuda
