// The device form of a candidate: CUDA device code whose `//!` lines give the launches, in terms of
// the sizes of a call. Pure.
//
//   //! dim       rows = x.size(0)
//   //! constant  COLUMNS = x.size(1)
//   //! tune      BLOCK = 128 256 512
//   //! scratch   partial float[rows * 32]
//   //! tensormap tiles = x shape=(rows, COLUMNS) box=(64, 64) swizzle=128
//   //! launch    row_max grid=(rows) block=(BLOCK) shared=4*BLOCK args=(x, partial, COLUMNS)
//
// ParseDeviceProgram() reads the lines; PlanDeviceProgram() evaluates them for a problem's sizes
// and one choice of the tuned values. Both bound everything: a stranger wrote the lines.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "toolchain/size_expression.h"
#include "toolchain/tune_space.h"
#include "wire/launches.h"

namespace assay {

struct DeviceDefinition {
  int line = 0;
  std::string name;
  std::string expression;
  bool is_macro = false;  // `constant`: also a macro of the compiler's
};

struct DeviceScratch {
  int line = 0;
  std::string name;
  uint64_t element_bytes = 0;
  std::string count;
};

struct DeviceTensorMap {
  int line = 0;
  std::string name;
  std::string tensor;              // or a scratch buffer
  std::vector<std::string> shape;  // slowest axis first; empty: the tensor's own
  std::vector<std::string> box;    // as many
  int swizzle_bytes = 0;           // 0, 32, 64, 128
};

struct DeviceLaunch {
  int line = 0;
  std::string kernel;
  std::array<std::string, 3> grid, block, cluster;  // x, y, z; "1" if left out
  bool has_cluster = false;
  std::string shared_bytes = "0";
  std::vector<std::string> arguments;
};

struct DeviceProgram {
  std::vector<DeviceDefinition> definitions;  // in order: each may use earlier ones
  std::vector<TuneLine> tunes;
  std::vector<DeviceScratch> scratches;
  std::vector<DeviceTensorMap> tensor_maps;
  std::vector<DeviceLaunch> launches;
};

// The error names the line. A source without a `//! launch` line is no device program.
std::expected<DeviceProgram, std::string> ParseDeviceProgram(std::string_view source);

// Returns true if a source has a `//! launch` line.
bool IsDeviceProgram(std::string_view source);

// A tensor or number of a call, as the problem describes it.
struct DeviceTensor {
  std::string name;
  std::vector<int64_t> shape;
  uint64_t element_bytes = 0;
  bool is_number = false;  // a scalar of forward's, passed by value
};

struct PlannedArgument {
  enum class Kind { kTensor, kNumber, kScratch, kTensorMap, kInteger };
  Kind kind = Kind::kInteger;
  uint32_t index = 0;  // of the tensor or number, the scratch buffer, the tensor map
  int64_t value = 0;   // kInteger
};

struct PlannedTensorMap {
  bool of_scratch = false;
  uint32_t index = 0;  // of the tensor or the scratch buffer
  uint64_t element_bytes = 0;
  std::vector<uint64_t> shape;  // slowest axis first, elements
  std::vector<uint32_t> box;
  int swizzle_bytes = 0;
};

struct PlannedLaunch {
  int line = 0;
  std::string kernel;
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  uint32_t shared_bytes = 0;
  std::vector<PlannedArgument> arguments;
};

struct DevicePlan {
  std::map<std::string, int64_t> macros;  // constants and tuned values, for the compiler's -D
  std::vector<uint64_t> scratch_bytes;    // in order of the scratch lines
  std::vector<PlannedTensorMap> tensor_maps;
  std::vector<PlannedLaunch> launches;
};

// `tuned`: a value for each tune line, by name; a missing one is the first listed. Errors name the
// line: unknown names, sizes that no launch can have.
std::expected<DevicePlan, std::string> PlanDeviceProgram(
    const DeviceProgram& program, std::span<const DeviceTensor> tensors,
    const std::map<std::string, int64_t>& tuned);

}  // namespace assay
