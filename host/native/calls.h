// Prepares the arguments of every slot before the timed blocks, and runs the loop of blocks.
#pragma once

#include <assay/kernel.h>
#include <stddef.h>

#include "regions.h"
#include "wire/block_loop.h"
#include "wire/types.h"

namespace assay::native {

// Arguments of all slots of one plan, in one private mapping. Slots share the shapes.
class Calls {
 public:
  // Makes them anew for a plan that PlanIsSound accepts. `stream`: the last argument of each call;
  // null: none. Returns false (with errno) if memory lacks.
  bool Prepare(const wire::Plan& plan, const Regions& regions, void* stream = nullptr);

  uint32_t slot_count() const { return slot_count_; }

  // Reads the slot's scalars, then calls the kernel with its arguments. `slot` must be below
  // slot_count().
  void Run(const AssayKernel& kernel, uint32_t slot) const {
    AssayArgument* arguments = arguments_ + size_t{slot} * argument_stride_;
    for (uint32_t i = 0; i < scalar_count_; ++i) {
      const Scalar& scalar = scalars_[i];
      arguments[scalar.index].integer =
          *reinterpret_cast<const int64_t*>(scalar.first + size_t{slot} * scalar.stride);
    }
    kernel.invoke(arguments);
  }

  // Loads all data that Run reads, except the slots themselves, into this core's caches.
  void Touch() const;

 private:
  struct Scalar {
    const unsigned char* first;  // in slot 0
    uint64_t stride;
    uint32_t index;  // of the argument
  };

  void FillShapes(const wire::Plan& plan);
  void FillSlot(const wire::Plan& plan, const Regions& regions, uint32_t slot);

  unsigned char* memory_ = nullptr;
  size_t memory_bytes_ = 0;
  uint32_t slot_count_ = 0;
  uint32_t argument_count_ = 0;   // of the plan
  uint32_t argument_stride_ = 0;  // with the stream if there is one
  void* stream_ = nullptr;
  uint32_t scalar_count_ = 0;
  AssayArgument* arguments_ = nullptr;  // slot_count_ x argument_stride_
  DLTensor* tensors_ = nullptr;         // slot_count_ x argument_count_
  int64_t* shapes_ = nullptr;           // argument_count_ x 2 x kRankMax: shape, then strides
  Scalar* scalars_ = nullptr;
};

// Serves timed blocks until the judge ends them.
void RunBlocks(wire::BlockLoop& loop, const AssayKernel& kernel, const Calls& calls);

}  // namespace assay::native
