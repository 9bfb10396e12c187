// CUDA's words for a kernel that the host runs, thread by thread: no barriers, no shared memory,
// and a warp of one lane. For kernels that are written so that this is enough.
#pragma once

#include <bit>
#include <cmath>

#include "fake_cuda.h"

#define __global__
#define __device__
#define WARP_LANES 1

struct EmulatedIndex {
  unsigned x = 0, y = 0, z = 0;
};
inline EmulatedIndex threadIdx, blockIdx, blockDim, gridDim;

inline double WarpSum(double value) { return value; }
inline double WarpMax(double value) { return value; }
inline long long __double_as_longlong(double value) { return std::bit_cast<long long>(value); }
inline double __longlong_as_double(long long value) { return std::bit_cast<double>(value); }
inline float __uint_as_float(unsigned value) { return std::bit_cast<float>(value); }

template <typename T>
T atomicMax(T* target, T value) {
  const T before = *target;
  if (value > before) *target = value;
  return before;
}
template <typename T>
T atomicMin(T* target, T value) {
  const T before = *target;
  if (value < before) *target = value;
  return before;
}
template <typename T>
T atomicAdd(T* target, T value) {
  const T before = *target;
  *target += value;
  return before;
}

// Runs `body` for every thread of the launch.
template <typename Body>
void EmulateGrid(const FakeLaunch& launch, Body body) {
  const auto& config = *launch.config;
  gridDim = {config.grid_x, config.grid_y, config.grid_z};
  blockDim = {config.block_x, config.block_y, config.block_z};
  for (blockIdx.z = 0; blockIdx.z < gridDim.z; ++blockIdx.z)
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)
      for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x)
        for (threadIdx.z = 0; threadIdx.z < blockDim.z; ++threadIdx.z)
          for (threadIdx.y = 0; threadIdx.y < blockDim.y; ++threadIdx.y)
            for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x) body();
}
