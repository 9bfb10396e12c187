#include "machine/shared_region.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/seals.h"

namespace assay {

Result<SharedRegion> SharedRegion::Create(const char* name, uint64_t size_bytes) {
  SharedRegion region;
  region.fd_ = UniqueFd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const auto failed = [&](const char* what) {
    return EnvironmentError(fmt::format("cannot {} {} bytes of shared memory for {}: {}", what,
                                        size_bytes, name, strerror(errno)));
  };
  if (!region.fd_) return failed("create");
  if (::ftruncate(region.fd_.get(), static_cast<off_t>(size_bytes)) != 0) return failed("size");
  void* data = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                      region.fd_.get(), 0);
  if (data == MAP_FAILED) return failed("map");
  region.data_ = static_cast<std::byte*>(data);
  region.size_bytes_ = size_bytes;
  return region;
}

SharedRegion::SharedRegion(SharedRegion&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

SharedRegion& SharedRegion::operator=(SharedRegion&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

SharedRegion::~SharedRegion() {
  if (data_ != nullptr) ::munmap(data_, size_bytes_);
}

Result<void> SharedRegion::SealAgainstNewWriters() {
  if (::fcntl(fd_.get(), F_ADD_SEALS, kReadOnlySeals) != 0)
    return EnvironmentError(fmt::format("cannot seal shared memory: {}", strerror(errno)));
  return {};
}

Result<void> SharedRegion::SealSize() {
  if (::fcntl(fd_.get(), F_ADD_SEALS, kSizeSeals) != 0)
    return EnvironmentError(fmt::format("cannot seal shared memory: {}", strerror(errno)));
  return {};
}

}  // namespace assay
