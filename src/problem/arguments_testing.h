// Arguments of problems, for tests.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "wire/types.h"

namespace assay {

inline wire::ArgumentSpec Tensor(std::string_view name, wire::Role role, wire::DType dtype,
                                 std::vector<int64_t> shape) {
  wire::ArgumentSpec spec{};
  name.copy(spec.name, wire::kNameBytes - 1);
  spec.role = role;
  spec.kind = wire::Kind::kTensor;
  spec.dtype = dtype;
  spec.rank = static_cast<uint32_t>(shape.size());
  spec.size_bytes = wire::ElementBytes(dtype);
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    spec.shape[axis] = shape[axis];
    spec.size_bytes *= static_cast<uint64_t>(shape[axis]);
  }
  return spec;
}

}  // namespace assay
