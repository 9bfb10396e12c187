// What a 'cubin' of the fake driver is: a shared library for this machine, in which each kernel is
// a function of the host's that runs the whole grid.
//
//   ASSAY_FAKE_KERNEL(scale, sizeof(float*), sizeof(int)) { ... parameter<float*>(0) ... }
#pragma once

#include <stddef.h>

#include "cuda/driver.h"

struct FakeLaunch {
  const assay::cuda::LaunchConfig* config;
  void** values;
  assay::cuda::Result result = assay::cuda::kSuccess;  // what the next synchronisation reports

  template <typename T>
  T parameter(int index) const {
    return *static_cast<T*>(values[index]);
  }
};

#define ASSAY_FAKE_KERNEL(name, ...)                                 \
  extern "C" __attribute__((visibility("default")))                  \
  const size_t name##_parameters[] = {__VA_ARGS__ __VA_OPT__(, ) 0}; \
  extern "C" __attribute__((visibility("default"))) void name(FakeLaunch& launch)
