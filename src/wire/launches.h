// The launches of a device candidate's kernels for the sizes of one plan. The judge has evaluated
// every expression; the host still checks each index and count.
#pragma once

#include <stdint.h>

#include "wire/device_image.h"

namespace assay::wire {

inline constexpr uint32_t kLaunchesMax = 512;
inline constexpr uint32_t kLaunchArgumentsMax = 64;
inline constexpr uint32_t kScratchesMax = 64;
inline constexpr uint32_t kTensorMapsMax = 512;
inline constexpr uint32_t kTensorMapRankMax = 5;

enum class LaunchArgumentKind : uint32_t {
  kTensor = 1,     // the address of argument `index` of the plan
  kNumber = 2,     // the value of argument `index` of the plan, from the slot
  kScratch = 3,    // the address of scratch buffer `index`
  kTensorMap = 4,  // tensor map `index`, by value
  kInteger = 5,    // `value`
};

struct LaunchArgument {
  LaunchArgumentKind kind;
  uint32_t index;
  int64_t value;
};

struct LaunchTensorMap {
  uint32_t of_scratch;  // 1: `index` is of a scratch buffer; 0: of an argument of the plan
  uint32_t index;
  uint32_t element_type;  // CUtensorMapDataType
  uint32_t element_bytes;
  uint32_t rank;
  uint32_t swizzle_bytes;             // 0, 32, 64, 128
  uint64_t shape[kTensorMapRankMax];  // slowest axis first
  uint32_t box[kTensorMapRankMax];
};

struct Launch {
  uint32_t line;    // of the candidate's source, for messages
  uint32_t kernel;  // index in the device image
  uint32_t grid[3], block[3], cluster[3];
  uint32_t shared_bytes;
  uint32_t argument_count;
  LaunchArgument arguments[kLaunchArgumentsMax];
};

struct Launches {
  uint32_t launch_count;
  uint32_t scratch_count;
  uint32_t tensor_map_count;
  uint64_t scratch_bytes[kScratchesMax];
  LaunchTensorMap tensor_maps[kTensorMapsMax];
  Launch launches[kLaunchesMax];
};

}  // namespace assay::wire
