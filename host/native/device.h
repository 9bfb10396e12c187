// Runs the device form: launches kernels of a device image by the judge's launches. This process
// then runs no host code of the candidate's. The image and the launches are checked all the same,
// as the image comes from a stranger's source.
#pragma once

#include "cuda/driver.h"
#include "regions.h"
#include "text.h"
#include "wire/launches.h"
#include "wire/types.h"

namespace assay::native {

// Writes what failed, and how, into the message. Returns false.
bool Fail(const cuda::Driver& driver, Text& message, const char* what, cuda::Result result);

// Opens the driver and this process's context on device 0: the judge shows a host one device.
// Returns false, with a message, on failure.
bool OpenDevice(cuda::Driver& driver, Text& message);

// Maps device memory from a descriptor, and closes that. The address is this process's own. Returns
// false, with a message, on failure.
bool MapDeviceMemory(const cuda::Driver& driver, int fd, uint64_t size_bytes, Mapping& mapping,
                     Text& message);

class DeviceCalls {
 public:
  // Loads the image and checks every launch against its kernel: number and sizes of the arguments,
  // shared memory. `image` and `launches` must outlive this object. Returns false, with a message
  // that names the line, on failure.
  bool Load(const cuda::Driver& driver, const Mapping& image, const wire::Launches& launches,
            const wire::Plan& plan, Text& message);
  // Makes the arguments of all slots anew. Returns false, with a message, on failure.
  bool Prepare(const wire::Plan& plan, const Regions& regions, Text& message);

  uint32_t slot_count() const { return slot_count_; }
  // Returns true if a call's launches do not depend on its values: no kernel gets a number from the
  // inputs.
  bool KnownAhead() const { return number_count_ == 0; }
  // Enqueues the slot's launches; stops at the first that is refused, and returns its result.
  // `slot` must be below slot_count().
  cuda::Result Run(uint32_t slot, cuda::Stream stream) const;
  // Waits until all of this process's work on the device is done.
  cuda::Result Synchronize() const { return driver_->context_synchronize(); }

 private:
  struct Parameter {
    uint64_t offset;  // of its value, from the start of the launch's values
    uint64_t bytes;   // as the kernel takes it
  };
  struct Kernel {
    cuda::Function function;
    uint64_t values_bytes;
    Parameter parameters[wire::kLaunchArgumentsMax];
  };
  struct NumberUse {
    const unsigned char* first;  // in slot 0
    uint64_t stride;
    uint32_t launch, argument;
    wire::Kind kind;
  };

  bool LoadLaunch(uint32_t index, Text& message);
  bool AllocateScratch(Text& message);
  bool FillSlot(const wire::Plan& plan, const Regions& regions, uint32_t slot, Text& message);
  bool EncodeTensorMap(uint32_t launch, const wire::LaunchTensorMap& map, const wire::Plan& plan,
                       const Regions& regions, uint32_t slot, cuda::TensorMap* encoded,
                       Text& message) const;
  void ReadNumbers(uint32_t slot) const;
  unsigned char* Values(uint32_t slot, uint32_t launch) const {
    return values_ + (uint64_t{slot} * launches_->launch_count + launch) * values_stride_;
  }
  void** Pointers(uint32_t slot, uint32_t launch) const {
    return pointers_ +
           (uint64_t{slot} * launches_->launch_count + launch) * wire::kLaunchArgumentsMax;
  }
  Text& Line(uint32_t launch, Text& message) const;

  const cuda::Driver* driver_ = nullptr;
  const wire::Launches* launches_ = nullptr;
  const wire::DeviceImageKernel* names_ = nullptr;
  cuda::Module module_ = nullptr;
  uint32_t slot_count_ = 0;
  Kernel kernels_[wire::kLaunchesMax] = {};  // one a launch
  cuda::LaunchAttribute clusters_[wire::kLaunchesMax] = {};
  cuda::Pointer scratches_[wire::kScratchesMax] = {};
  uint64_t values_stride_ = 0;  // of one launch of one slot
  unsigned char* values_ = nullptr;
  void** pointers_ = nullptr;
  uint64_t values_bytes_ = 0, pointers_bytes_ = 0;  // mapped
  NumberUse* numbers_ = nullptr;
  uint32_t number_count_ = 0;
};

}  // namespace assay::native
