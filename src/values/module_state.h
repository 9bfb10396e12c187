// The tensors of its module that the reference's forward changes, as one call leaves them: running
// statistics, counters, a cache.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "machine/shared_region.h"
#include "model/dtype.h"

namespace assay {

struct StateTensor {
  std::string name;  // in the module
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  uint64_t offset = 0;  // in the memory
  int64_t count = 0;    // elements
  // Returns the place behind it.
  uint64_t end() const;
};

struct ModuleState {
  std::vector<StateTensor> tensors;
  uint64_t left_out = 0;    // tensors that the memory does not hold
  uint64_t text_bytes = 0;  // of the description at the memory's start
  SharedRegion memory;      // of a fixed size
};

// The memory for the state of a module: what does not fit is not compared.
Result<SharedRegion> StateMemory();

// Reads the description of tensors (host/python/assay_host/module_state.py). Errors (kEnvironment):
// it is none, or a tensor lies outside of memory of this size.
Result<std::vector<StateTensor>> ParseState(std::string_view text, uint64_t memory_bytes);

}  // namespace assay
