#include "cuda/cupti.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>

#if __has_include(<cupti.h>)
#include <cupti.h>
#endif

namespace assay::cuda {
namespace {

TEST(Cupti, WhatIsMissingIsTold) {
  Cupti cupti;
  char why[200] = "";
  EXPECT_FALSE(OpenCupti(&cupti, "libnothing-like-cupti.so", why, sizeof why));
  EXPECT_NE(std::strstr(why, "there is no CUPTI"), nullptr) << why;
  EXPECT_FALSE(OpenCupti(&cupti, "libm.so.6", why, sizeof why));
  EXPECT_NE(std::strstr(why, "has no cuptiActivityRegisterCallbacks"), nullptr) << why;
  EXPECT_EQ(cupti.enable, nullptr);
}

#ifdef CUPTI_API_VERSION
// The declarations that stand in for cupti.h are the same as its own, in every version of a
// kernel's record that a CUPTI in use writes.
template <typename Record>
constexpr bool BeginsAlike() {
  return offsetof(KernelActivity, kind) == offsetof(Record, kind) &&
         offsetof(KernelActivity, start) == offsetof(Record, start) &&
         offsetof(KernelActivity, end) == offsetof(Record, end) &&
         offsetof(KernelActivity, name) == offsetof(Record, name);
}
static_assert(BeginsAlike<CUpti_ActivityKernel8>() && BeginsAlike<CUpti_ActivityKernel9>());
static_assert(int{kActivityConcurrentKernel} == int{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
static_assert(int{kCuptiSuccess} == int{CUPTI_SUCCESS});
#endif

}  // namespace
}  // namespace assay::cuda
