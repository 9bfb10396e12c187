#include "device.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace assay::native {
namespace {

using cuda::Result;
using wire::ArgumentSpec;
using wire::Launch;
using wire::LaunchArgument;
using wire::LaunchArgumentKind;
using wire::Plan;

constexpr uint64_t kValueAlignment = alignof(cuda::TensorMap);
constexpr uint32_t kSharedBytesByDefault = 48 * 1024;
constexpr uint32_t kPortableClusterBlocks = 8;

uint64_t RoundUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

void* MapPrivate(uint64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

// The bytes that an argument hands over: 0 for those whose width the kernel chooses.
uint64_t BytesOf(LaunchArgumentKind kind) {
  switch (kind) {
    case LaunchArgumentKind::kTensor:
    case LaunchArgumentKind::kScratch:
      return sizeof(cuda::Pointer);
    case LaunchArgumentKind::kTensorMap:
      return sizeof(cuda::TensorMap);
    case LaunchArgumentKind::kNumber:
    case LaunchArgumentKind::kInteger:
      return 0;
  }
  return 0;
}

const char* KindName(LaunchArgumentKind kind) {
  switch (kind) {
    case LaunchArgumentKind::kTensor:
      return "a tensor's address";
    case LaunchArgumentKind::kScratch:
      return "a scratch buffer's address";
    case LaunchArgumentKind::kTensorMap:
      return "a tensor map";
    case LaunchArgumentKind::kNumber:
      return "a number";
    case LaunchArgumentKind::kInteger:
      return "an integer";
  }
  return "nothing";
}

// An integer in 1, 2, 4 or 8 bytes; false where it does not fit.
bool StoreInteger(int64_t value, uint64_t bytes, unsigned char* target) {
  const int64_t bits = static_cast<int64_t>(8 * bytes);
  if (bytes < 8) {
    const int64_t low = -(int64_t{1} << (bits - 1)), high = (int64_t{1} << bits) - 1;
    if (value < low || value > high) return false;
  }
  memcpy(target, &value, bytes);  // little-endian, as every machine that has these devices
  return true;
}

// The value of a number of forward's, in the width that the kernel takes.
void StoreNumber(const unsigned char* source, wire::Kind kind, uint64_t bytes,
                 unsigned char* target) {
  if (kind != wire::Kind::kFloat) {
    memcpy(target, source, bytes);
    return;
  }
  double value;
  memcpy(&value, source, sizeof value);
  const float single = static_cast<float>(value);
  if (bytes == sizeof single)
    memcpy(target, &single, sizeof single);
  else
    memcpy(target, &value, sizeof value);
}

bool NumberFits(wire::Kind kind, uint64_t bytes) {
  switch (kind) {
    case wire::Kind::kFloat:
      return bytes == 4 || bytes == 8;
    case wire::Kind::kInt:
      return bytes == 4 || bytes == 8;
    case wire::Kind::kBool:
      return bytes == 1 || bytes == 4;
    case wire::Kind::kTensor:
      return false;
  }
  return false;
}

}  // namespace

bool Fail(const cuda::Driver& driver, Text& message, const char* what, Result result) {
  char text[200];
  driver.Describe(result, text, sizeof text);
  message.Add(what).Add(": ").Add(text);
  return false;
}

bool OpenDevice(cuda::Driver& driver, Text& message) {
  char why[300];
  if (!cuda::OpenDriver(&driver, nullptr, why, sizeof why)) {
    message.Add(why);
    return false;
  }
  cuda::Device device = 0;
  cuda::Context context = nullptr;
  Result result = driver.init(0);
  if (result == cuda::kSuccess) result = driver.device_get(&device, 0);
  // The primary one: a candidate's own code, where it has some, shares it.
  if (result == cuda::kSuccess) result = driver.primary_context_retain(&context, device);
  if (result == cuda::kSuccess) result = driver.context_set(context);
  return result == cuda::kSuccess || Fail(driver, message, "no CUDA context", result);
}

bool MapDeviceMemory(const cuda::Driver& driver, int fd, uint64_t size_bytes, Mapping& mapping,
                     Text& message) {
  cuda::AllocationHandle handle = 0;
  cuda::Pointer address = 0;
  const cuda::AccessDescription access;
  void* const descriptor = reinterpret_cast<void*>(static_cast<intptr_t>(fd));
  Result result = driver.import_handle(&handle, descriptor,
                                       cuda::AllocationProperties().requested_handle_types);
  close(fd);
  if (result != cuda::kSuccess)
    return Fail(driver, message, "device memory of the judge's cannot be imported", result);
  result = driver.address_reserve(&address, size_bytes, 0, 0, 0);
  if (result == cuda::kSuccess) result = driver.map(address, size_bytes, 0, handle, 0);
  if (result == cuda::kSuccess) result = driver.set_access(address, size_bytes, &access, 1);
  driver.release(handle);  // the mapping keeps the memory
  if (result != cuda::kSuccess)
    return Fail(driver, message, "device memory of the judge's cannot be mapped", result);
  mapping = {reinterpret_cast<unsigned char*>(address), size_bytes, true};
  return true;
}

Text& DeviceCalls::Line(uint32_t launch, Text& message) const {
  return message.Add("line ").Add(int64_t{launches_->launches[launch].line}).Add(": ");
}

bool DeviceCalls::Load(const cuda::Driver& driver, const Mapping& image,
                       const wire::Launches& launches, const Plan& plan, Text& message) {
  driver_ = &driver;
  launches_ = &launches;
  if (launches.launch_count == 0 || launches.launch_count > wire::kLaunchesMax ||
      launches.scratch_count > wire::kScratchesMax ||
      launches.tensor_map_count > wire::kTensorMapsMax) {
    message.Add("the launches of the judge's cannot be served");
    return false;
  }
  wire::DeviceImage read;
  if (!wire::ReadDeviceImage(image.data, image.size_bytes, &read)) {
    message.Add("the device image is damaged");
    return false;
  }
  names_ = read.kernels;
  const Result result = driver.module_load(&module_, read.cubin);
  if (result != cuda::kSuccess)
    return Fail(driver, message, "the device code does not load", result);
  for (uint32_t i = 0; i < launches.launch_count; ++i) {
    if (launches.launches[i].kernel >= read.kernel_count ||
        launches.launches[i].argument_count > wire::kLaunchArgumentsMax) {
      message.Add("the launches of the judge's cannot be served");
      return false;
    }
    for (uint32_t a = 0; a < launches.launches[i].argument_count; ++a) {
      const LaunchArgument& argument = launches.launches[i].arguments[a];
      const uint32_t count = argument.kind == LaunchArgumentKind::kScratch ? launches.scratch_count
                             : argument.kind == LaunchArgumentKind::kTensorMap
                                 ? launches.tensor_map_count
                             : argument.kind == LaunchArgumentKind::kInteger ? UINT32_MAX
                                                                             : plan.argument_count;
      if (argument.index >= count) {
        message.Add("the launches of the judge's cannot be served");
        return false;
      }
    }
    if (!LoadLaunch(i, message)) return false;
  }
  return AllocateScratch(message);
}

bool DeviceCalls::LoadLaunch(uint32_t index, Text& message) {
  const Launch& launch = launches_->launches[index];
  const char* name = names_[launch.kernel].name;
  Kernel& kernel = kernels_[index];
  Result result = driver_->module_function(&kernel.function, module_, name);
  if (result != cuda::kSuccess)
    return Fail(*driver_, Line(index, message).Add("kernel ").Add(name), "", result);
  for (uint32_t a = 0; a < launch.argument_count; ++a) {
    const LaunchArgument& argument = launch.arguments[a];
    size_t offset = 0, bytes = 0;
    if (driver_->function_parameter(kernel.function, a, &offset, &bytes) != cuda::kSuccess) {
      Line(index, message).Add("args= has ").Add(int64_t{launch.argument_count});
      message.Add(" values, and the kernel takes ").Add(int64_t{a});
      return false;
    }
    const uint64_t given = BytesOf(argument.kind);
    const bool any_width = given == 0 && (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8);
    if (given != bytes && !any_width) {
      Line(index, message).Add("argument ").Add(int64_t{a} + 1).Add(" is ");
      message.Add(KindName(argument.kind)).Add(", and the kernel's parameter has ");
      message.Add(static_cast<int64_t>(bytes)).Add(" bytes");
      return false;
    }
    kernel.parameters[a] = {
        RoundUp(kernel.values_bytes,
                given == sizeof(cuda::TensorMap) ? kValueAlignment : sizeof(uint64_t)),
        bytes};
    kernel.values_bytes = kernel.parameters[a].offset + bytes;
  }
  size_t offset = 0, bytes = 0;
  if (driver_->function_parameter(kernel.function, launch.argument_count, &offset, &bytes) ==
      cuda::kSuccess) {
    Line(index, message).Add("args= has ").Add(int64_t{launch.argument_count});
    message.Add(" values, and the kernel takes more");
    return false;
  }
  if (RoundUp(kernel.values_bytes, kValueAlignment) > values_stride_)
    values_stride_ = RoundUp(kernel.values_bytes, kValueAlignment);
  if (launch.shared_bytes > kSharedBytesByDefault)
    result = driver_->function_set_attribute(kernel.function, cuda::kFunctionMaxDynamicSharedBytes,
                                             static_cast<int>(launch.shared_bytes));
  if (result != cuda::kSuccess) {
    Line(index, message).Add(int64_t{launch.shared_bytes}).Add(" bytes of shared memory");
    return Fail(*driver_, message, "", result);
  }
  const uint32_t blocks = launch.cluster[0] * launch.cluster[1] * launch.cluster[2];
  if (blocks > kPortableClusterBlocks)
    result = driver_->function_set_attribute(kernel.function,
                                             cuda::kFunctionNonPortableClusterSizeAllowed, 1);
  if (result != cuda::kSuccess)
    return Fail(*driver_, Line(index, message), "a cluster of this size", result);
  clusters_[index].id = cuda::kLaunchClusterDimension;
  clusters_[index].value.cluster = {launch.cluster[0], launch.cluster[1], launch.cluster[2]};
  return true;
}

bool DeviceCalls::AllocateScratch(Text& message) {
  for (uint32_t i = 0; i < launches_->scratch_count; ++i) {
    const Result result = driver_->memory_allocate(&scratches_[i], launches_->scratch_bytes[i]);
    if (result == cuda::kSuccess) continue;
    message.Add("scratch buffer ").Add(int64_t{i} + 1).Add(" of ");
    message.Add(static_cast<int64_t>(launches_->scratch_bytes[i])).Add(" bytes");
    return Fail(*driver_, message, "", result);
  }
  return true;
}

bool DeviceCalls::EncodeTensorMap(uint32_t launch, const wire::LaunchTensorMap& map,
                                  const Plan& plan, const Regions& regions, uint32_t slot,
                                  cuda::TensorMap* encoded, Text& message) const {
  if (map.rank == 0 || map.rank > wire::kTensorMapRankMax ||
      map.index >= (map.of_scratch != 0 ? launches_->scratch_count : plan.argument_count)) {
    Line(launch, message).Add("a tensor map of the judge's cannot be served");
    return false;
  }
  void* const address = map.of_scratch != 0
                            ? reinterpret_cast<void*>(scratches_[map.index])
                            : AddressOf(plan.arguments[map.index], plan, regions, slot);
  // The driver counts axes from the fastest one on.
  uint64_t shape[wire::kTensorMapRankMax], strides[wire::kTensorMapRankMax];
  uint32_t box[wire::kTensorMapRankMax], steps[wire::kTensorMapRankMax];
  uint64_t stride = map.element_bytes;
  for (uint32_t axis = 0; axis < map.rank; ++axis) {
    shape[axis] = map.shape[map.rank - 1 - axis];
    box[axis] = map.box[map.rank - 1 - axis];
    steps[axis] = 1;
    stride *= shape[axis];
    strides[axis] = stride;
  }
  constexpr int kInterleaveNone = 0, kPromoteToL2Lines128 = 2, kFillZeros = 0;
  const int swizzle = map.swizzle_bytes == 32    ? 1
                      : map.swizzle_bytes == 64  ? 2
                      : map.swizzle_bytes == 128 ? 3
                                                 : 0;
  const Result result = driver_->encode_tensor_map(
      encoded, static_cast<cuda::TensorMapType>(map.element_type), map.rank, address, shape,
      strides, box, steps, kInterleaveNone, swizzle, kPromoteToL2Lines128, kFillZeros);
  return result == cuda::kSuccess ||
         Fail(*driver_, Line(launch, message), "a tensor map that the driver refuses", result);
}

bool DeviceCalls::FillSlot(const Plan& plan, const Regions& regions, uint32_t slot, Text& message) {
  for (uint32_t l = 0; l < launches_->launch_count; ++l) {
    const Launch& launch = launches_->launches[l];
    unsigned char* values = Values(slot, l);
    void** pointers = Pointers(slot, l);
    for (uint32_t a = 0; a < launch.argument_count; ++a) {
      const LaunchArgument& argument = launch.arguments[a];
      const Parameter& parameter = kernels_[l].parameters[a];
      unsigned char* target = values + parameter.offset;
      pointers[a] = target;
      switch (argument.kind) {
        case LaunchArgumentKind::kTensor: {
          const auto address = reinterpret_cast<cuda::Pointer>(
              AddressOf(plan.arguments[argument.index], plan, regions, slot));
          memcpy(target, &address, sizeof address);
          break;
        }
        case LaunchArgumentKind::kScratch:
          memcpy(target, &scratches_[argument.index], sizeof(cuda::Pointer));
          break;
        case LaunchArgumentKind::kTensorMap:
          if (!EncodeTensorMap(l, launches_->tensor_maps[argument.index], plan, regions, slot,
                               reinterpret_cast<cuda::TensorMap*>(target), message))
            return false;
          break;
        case LaunchArgumentKind::kInteger:
          if (StoreInteger(argument.value, parameter.bytes, target)) break;
          Line(l, message).Add("argument ").Add(int64_t{a} + 1).Add(" is ").Add(argument.value);
          message.Add(", and the kernel's parameter has ");
          message.Add(static_cast<int64_t>(parameter.bytes)).Add(" bytes");
          return false;
        case LaunchArgumentKind::kNumber:
          break;  // read before each call
      }
    }
  }
  return true;
}

bool DeviceCalls::Prepare(const Plan& plan, const Regions& regions, Text& message) {
  if (values_ != nullptr) munmap(values_, values_bytes_);
  if (pointers_ != nullptr) munmap(pointers_, pointers_bytes_);
  values_ = nullptr;
  pointers_ = nullptr;
  number_count_ = 0;
  slot_count_ = plan.slot_count;
  const uint64_t calls = uint64_t{plan.slot_count} * launches_->launch_count;
  const uint64_t numbers_bytes =
      uint64_t{wire::kLaunchesMax} * wire::kLaunchArgumentsMax * sizeof(NumberUse);
  pointers_bytes_ = calls * wire::kLaunchArgumentsMax * sizeof(void*);
  values_bytes_ = calls * values_stride_ + kValueAlignment;
  pointers_ = static_cast<void**>(MapPrivate(pointers_bytes_));
  values_ = static_cast<unsigned char*>(MapPrivate(values_bytes_));
  if (numbers_ == nullptr) numbers_ = static_cast<NumberUse*>(MapPrivate(numbers_bytes));
  if (pointers_ == nullptr || values_ == nullptr || numbers_ == nullptr) {
    message.Add("memory for the slots' arguments: ").Add(strerror(errno));
    return false;
  }
  for (uint32_t l = 0; l < launches_->launch_count; ++l)
    for (uint32_t a = 0; a < launches_->launches[l].argument_count; ++a) {
      const LaunchArgument& argument = launches_->launches[l].arguments[a];
      if (argument.kind != LaunchArgumentKind::kNumber) continue;
      const ArgumentSpec& spec = plan.arguments[argument.index];
      if (regions[wire::Region::kNumbers].data == nullptr) {
        message.Add("numbers lie in a region that is not attached");
        return false;
      }
      if (!NumberFits(spec.kind, kernels_[l].parameters[a].bytes)) {
        Line(l, message).Add("argument ").Add(int64_t{a} + 1);
        message.Add(" is a number of another type than the kernel's parameter");
        return false;
      }
      numbers_[number_count_++] = {AddressOf(spec, plan, regions, 0), plan.input_stride, l, a,
                                   spec.kind};
    }
  for (uint32_t slot = 0; slot < slot_count_; ++slot)
    if (!FillSlot(plan, regions, slot, message)) return false;
  return true;
}

void DeviceCalls::ReadNumbers(uint32_t slot) const {
  for (uint32_t i = 0; i < number_count_; ++i) {
    const NumberUse& use = numbers_[i];
    const Parameter& parameter = kernels_[use.launch].parameters[use.argument];
    StoreNumber(use.first + slot * use.stride, use.kind, parameter.bytes,
                Values(slot, use.launch) + parameter.offset);
  }
}

Result DeviceCalls::Run(uint32_t slot, cuda::Stream stream) const {
  ReadNumbers(slot);
  for (uint32_t l = 0; l < launches_->launch_count; ++l) {
    const Launch& launch = launches_->launches[l];
    cuda::LaunchConfig config;
    config.grid_x = launch.grid[0];
    config.grid_y = launch.grid[1];
    config.grid_z = launch.grid[2];
    config.block_x = launch.block[0];
    config.block_y = launch.block[1];
    config.block_z = launch.block[2];
    config.shared_bytes = launch.shared_bytes;
    config.stream = stream;
    if (launch.cluster[0] * launch.cluster[1] * launch.cluster[2] > 1) {
      config.attributes = const_cast<cuda::LaunchAttribute*>(&clusters_[l]);
      config.attribute_count = 1;
    }
    const Result result =
        driver_->launch(&config, kernels_[l].function, Pointers(slot, l), nullptr);
    if (result != cuda::kSuccess) return result;
  }
  return cuda::kSuccess;
}

}  // namespace assay::native
