// What a device candidate's kernels are launched with, over the sizes of the plan: the judge has
// worked every expression out. The host still checks each index and count.
#pragma once

#include <stdint.h>

#include "wire/device_image.h"

namespace assay::wire {

inline constexpr uint32_t kLaunchesMax = 64;
inline constexpr uint32_t kLaunchArgumentsMax = 64;
inline constexpr uint32_t kScratchesMax = 32;
inline constexpr uint32_t kTensorMapsMax = 32;
inline constexpr uint32_t kTensorMapRankMax = 5;

enum class LaunchArgumentKind : uint32_t {
  kTensor = 1,     // index: of the plan's argument; its address
  kNumber = 2,     // index: of the plan's argument; its value in the slot
  kScratch = 3,    // index: of the scratch buffer; its address
  kTensorMap = 4,  // index: of the tensor map, passed by value
  kInteger = 5,    // value
};

struct LaunchArgument {
  LaunchArgumentKind kind;
  uint32_t index;
  int64_t value;
};

struct LaunchTensorMap {
  uint32_t of_scratch;  // 1: `index` is a scratch buffer's, 0: an argument's of the plan
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
  uint32_t kernel;  // of the device image
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
