#include "gpu/gpu.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <utility>

namespace assay {

using cuda::Result::kSuccess;

namespace {

// "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
std::string UuidText(const unsigned char (&uuid)[16]) {
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid[i]);
  }
  return text;
}

// NVRTC's name of a compute capability, with the instructions of that very architecture where it
// has some.
std::string Architecture(int major, int minor) {
  return fmt::format("sm_{}{}{}", major, minor, major >= 9 ? "a" : "");
}

}  // namespace

Result<void> Gpu::Check(cuda::Result result, std::string_view what) const {
  if (result == kSuccess) return {};
  char text[300];
  driver_->Describe(result, text, sizeof text);
  const ErrorCode code = result == cuda::kOutOfMemory ? ErrorCode::kDeviceMemory
                         : result == cuda::kNoDevice  ? ErrorCode::kNoDevice
                                                      : ErrorCode::kNone;
  return Fail(ErrorKind::kEnvironment, fmt::format("cannot {}: {}", what, text), code);
}

std::vector<std::string> GpuNames() {
  cuda::Driver driver;
  char why[300], name[256] = "";
  int count = 0;
  if (!cuda::OpenDriver(&driver, nullptr, why, sizeof why)) return {};
  if (driver.init(0) != cuda::kSuccess || driver.device_count(&count) != cuda::kSuccess) return {};
  std::vector<std::string> names;
  for (int number = 0; number < count; ++number) {
    cuda::Device device = 0;
    if (driver.device_get(&device, number) != cuda::kSuccess ||
        driver.device_name(name, sizeof name, device) != cuda::kSuccess)
      break;
    names.emplace_back(name);
  }
  return names;
}

Result<Gpu> Gpu::Open(const char* library) {
  Gpu gpu;
  gpu.driver_ = std::make_unique<cuda::Driver>();
  char why[300];
  bool missing = false;
  if (!cuda::OpenDriver(gpu.driver_.get(), library, why, sizeof why, &missing))
    return Fail(ErrorKind::kEnvironment, why, missing ? ErrorCode::kNoDevice : ErrorCode::kNone);
  const cuda::Driver& driver = *gpu.driver_;
  Dl_info found{};
  if (::dladdr(reinterpret_cast<const void*>(driver.init), &found) != 0 &&
      found.dli_fname != nullptr)
    gpu.library_folder_ = std::filesystem::path(found.dli_fname).parent_path().string();
  ASSAY_RETURN_IF_ERROR(gpu.Check(driver.init(0), "use the GPU"));
  ASSAY_RETURN_IF_ERROR(gpu.Check(driver.device_get(&gpu.device_, 0), "use the GPU"));
  GpuFacts& facts = gpu.facts_;
  char name[256] = "";
  unsigned char uuid[16] = {};
  size_t memory_bytes = 0;
  int major = 0, minor = 0, l2_bytes = 0, shares = 0;
  const std::pair<cuda::DeviceAttribute, int*> attributes[] = {
      {cuda::kComputeCapabilityMajor, &major},
      {cuda::kComputeCapabilityMinor, &minor},
      {cuda::kL2CacheBytes, &l2_bytes},
      {cuda::kHandleTypePosixFileDescriptorSupported, &shares},
      {cuda::kMultiprocessorCount, &facts.multiprocessors},
      {cuda::kMaxThreadsPerMultiprocessor, &facts.threads_per_multiprocessor},
      {cuda::kMaxRegistersPerMultiprocessor, &facts.registers_per_multiprocessor},
      {cuda::kMaxSharedBytesPerMultiprocessor, &facts.shared_bytes_per_multiprocessor},
      {cuda::kMaxSharedBytesPerBlockOptin, &facts.shared_bytes_per_block},
      {cuda::kMaxBlocksPerMultiprocessor, &facts.blocks_per_multiprocessor},
      {cuda::kReservedSharedBytesPerBlock, &facts.reserved_shared_bytes_per_block}};
  cuda::Result result = driver.device_name(name, sizeof name, gpu.device_);
  if (result == kSuccess) result = driver.device_uuid(uuid, gpu.device_);
  if (result == kSuccess) result = driver.device_memory(&memory_bytes, gpu.device_);
  if (result == kSuccess) result = driver.driver_version(&facts.driver_version);
  for (const auto& [attribute, value] : attributes)
    if (result == kSuccess) result = driver.device_attribute(value, attribute, gpu.device_);
  ASSAY_RETURN_IF_ERROR(gpu.Check(result, "ask the GPU what it is"));
  facts.name = name;
  facts.uuid = UuidText(uuid);
  facts.architecture = Architecture(major, minor);
  facts.memory_bytes = memory_bytes;
  facts.l2_bytes = static_cast<uint64_t>(l2_bytes);
  if (shares == 0)
    return EnvironmentError(
        fmt::format("{} cannot share its memory between processes as file descriptors", name));
  cuda::Context context = nullptr;
  result = driver.primary_context_retain(&context, gpu.device_);
  if (result == kSuccess) result = driver.context_set(context);
  ASSAY_RETURN_IF_ERROR(gpu.Check(result, "make a context on the GPU"));
  return gpu;
}

std::string Gpu::Describe() const {
  return fmt::format("{} ({}, driver for CUDA {}.{})", facts_.name, facts_.architecture,
                     facts_.driver_version / 1000, facts_.driver_version % 1000 / 10);
}

uint64_t Gpu::FreeBytes() const {
  size_t available = 0, total = 0;
  return driver_->memory_info(&available, &total) == kSuccess ? available : 0;
}

Result<void> Gpu::Synchronize() const {
  return Check(driver_->context_synchronize(), "wait for the GPU");
}

Result<void> Gpu::CopyToHost(void* target, cuda::Pointer source, uint64_t size_bytes) const {
  ASSAY_RETURN_IF_ERROR(
      Check(driver_->copy_to_host(target, source, size_bytes, nullptr), "copy from the GPU"));
  return Synchronize();
}

Result<DeviceRegion> DeviceRegion::Shared(const Gpu& gpu, uint64_t size_bytes) {
  return Create(gpu, size_bytes, true);
}

Result<DeviceRegion> DeviceRegion::Private(const Gpu& gpu, uint64_t size_bytes) {
  return Create(gpu, size_bytes, false);
}

Result<DeviceRegion> DeviceRegion::Create(const Gpu& gpu, uint64_t size_bytes, bool shared) {
  const cuda::Driver& driver = gpu.driver();
  cuda::AllocationProperties properties;
  properties.location.id = gpu.device_;
  if (!shared) properties.requested_handle_types = 0;
  size_t granularity = 0;
  constexpr int kMinimum = 0;
  ASSAY_RETURN_IF_ERROR(gpu.Check(driver.granularity(&granularity, &properties, kMinimum),
                                  "ask for the size of the GPU's pages"));
  DeviceRegion region;
  region.driver_ = &driver;
  region.size_bytes_ = (size_bytes + granularity - 1) / granularity * granularity;
  const std::string what = fmt::format(
      "take {:.2f} GB of the GPU's memory, of which {:.2f} GB are free",
      static_cast<double>(region.size_bytes_) / 1e9, static_cast<double>(gpu.FreeBytes()) / 1e9);
  ASSAY_RETURN_IF_ERROR(
      gpu.Check(driver.create(&region.handle_, region.size_bytes_, &properties, 0), what));
  region.has_handle_ = true;
  region.held_bytes_ = gpu.held_bytes_;
  *region.held_bytes_ += region.size_bytes_;
  cuda::Result result = driver.address_reserve(&region.address_, region.size_bytes_, 0, 0, 0);
  if (result == kSuccess)
    result = driver.map(region.address_, region.size_bytes_, 0, region.handle_, 0);
  region.is_mapped_ = result == kSuccess;
  cuda::AccessDescription access;
  access.location.id = gpu.device_;
  if (result == kSuccess)
    result = driver.set_access(region.address_, region.size_bytes_, &access, 1);
  ASSAY_RETURN_IF_ERROR(gpu.Check(result, "map the GPU's memory"));
  if (!shared) return region;
  int fd = -1;
  result = driver.export_handle(&fd, region.handle_, properties.requested_handle_types, 0);
  ASSAY_RETURN_IF_ERROR(gpu.Check(result, "share the GPU's memory"));
  region.fd_ = UniqueFd(fd);
  return region;
}

DeviceRegion::DeviceRegion(DeviceRegion&& other) noexcept { *this = std::move(other); }

DeviceRegion& DeviceRegion::operator=(DeviceRegion&& other) noexcept {
  std::swap(driver_, other.driver_);
  std::swap(held_bytes_, other.held_bytes_);
  std::swap(fd_, other.fd_);
  std::swap(handle_, other.handle_);
  std::swap(address_, other.address_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(has_handle_, other.has_handle_);
  std::swap(is_mapped_, other.is_mapped_);
  return *this;
}

DeviceRegion::~DeviceRegion() {
  if (is_mapped_) driver_->unmap(address_, size_bytes_);
  if (address_ != 0) driver_->address_free(address_, size_bytes_);
  if (!has_handle_) return;
  driver_->release(handle_);
  *held_bytes_ -= size_bytes_;
}

}  // namespace assay
