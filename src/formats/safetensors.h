// Tensors of a .safetensors file. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay {

struct StoredTensor {
  std::string dtype;  // as PyTorch names it: "int32"
  std::vector<int64_t> shape;
  std::string bytes;  // little-endian, row-major
};

// Errors (kUsage): not such a file, no tensor of this name, a dtype that PyTorch has not, offsets
// outside of the file.
Result<StoredTensor> ReadStoredTensor(std::string_view file, const std::string& name);

}  // namespace assay
