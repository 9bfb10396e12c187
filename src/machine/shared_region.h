// A shared memory region that the judge owns: one memfd, mapped into the judge and passed to hosts.
// Pages exist only once touched, so a region may be sized for the largest case. Destruction unmaps
// it here alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay {

class SharedRegion {
 public:
  SharedRegion() = default;
  // Errors (kEnvironment): no memory, no memfd.
  static Result<SharedRegion> Create(const char* name, uint64_t size_bytes);
  SharedRegion(SharedRegion&& other) noexcept;
  SharedRegion& operator=(SharedRegion&& other) noexcept;
  ~SharedRegion();

  // From now on nobody can map the region writable, write to it or change its size. Mappings that
  // exist stay writable: the judge's own, and those of hosts that have attached.
  Result<void> SealAgainstNewWriters();
  // From now on nobody can change its size: a host could otherwise truncate it under the judge.
  Result<void> SealSize();

  int fd() const { return fd_.get(); }
  std::byte* data() const { return data_; }
  uint64_t size_bytes() const { return size_bytes_; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  UniqueFd fd_;
  std::byte* data_ = nullptr;
  uint64_t size_bytes_ = 0;
};

}  // namespace assay
