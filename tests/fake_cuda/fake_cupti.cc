// CUPTI beside the fake driver, which tells it of each kernel that ran. Records are as large as
// those of CUDA 13, and every second one is of another kind. With FAKE_CUPTI_REFUSES in the
// environment nothing may be noted.
#include <stdlib.h>
#include <string.h>

#include <vector>

#include "cuda/cupti.h"

using namespace assay::cuda;

#define FAKE(type) extern "C" __attribute__((visibility("default"))) type

namespace {
constexpr CuptiResult kMaxLimitReached = static_cast<CuptiResult>(12);
constexpr CuptiResult kInsufficientPrivileges = static_cast<CuptiResult>(35);
constexpr size_t kRecordBytes = 216;
constexpr int kMemset = 2;

RequestBuffer request = nullptr;
CompleteBuffer complete = nullptr;
bool enabled = false;
std::vector<KernelActivity> records;
}  // namespace

FAKE(CuptiResult) cuptiActivityRegisterCallbacks(RequestBuffer give, CompleteBuffer take) {
  request = give;
  complete = take;
  return kCuptiSuccess;
}
FAKE(CuptiResult) cuptiActivityEnable(ActivityKind kind) {
  if (getenv("FAKE_CUPTI_REFUSES") != nullptr) return kInsufficientPrivileges;
  enabled = request != nullptr && kind == kActivityConcurrentKernel;
  return kCuptiSuccess;
}
FAKE(CuptiResult) cuptiActivityDisable(ActivityKind) {
  enabled = false;
  return kCuptiSuccess;
}
FAKE(CuptiResult) cuptiActivityFlushAll(unsigned) {
  size_t begin = 0;
  while (begin < records.size()) {
    uint8_t* buffer = nullptr;
    size_t size_bytes = 0, records_max = 0, used = 0;
    request(&buffer, &size_bytes, &records_max);
    for (; begin < records.size() && used + kRecordBytes <= size_bytes; ++begin) {
      memset(buffer + used, 0, kRecordBytes);
      memcpy(buffer + used, &records[begin], sizeof(KernelActivity));
      used += kRecordBytes;
    }
    complete(nullptr, 0, buffer, size_bytes, used);
  }
  records.clear();
  return kCuptiSuccess;
}
FAKE(CuptiResult) cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid_bytes, void** record) {
  uint8_t* next = *record == nullptr ? buffer : static_cast<uint8_t*>(*record) + kRecordBytes;
  if (next + kRecordBytes > buffer + valid_bytes) return kMaxLimitReached;
  *record = next;
  return kCuptiSuccess;
}
FAKE(CuptiResult) cuptiGetResultString(CuptiResult, const char** text) {
  *text = "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES";
  return kCuptiSuccess;
}

// Of the fake driver: a kernel ran for so long.
FAKE(void) FakeCuptiRan(const char* name, unsigned long long time_ns) {
  if (!enabled) return;
  records.push_back({kActivityConcurrentKernel, {}, 1000, 1000 + time_ns, {}, name});
  records.push_back({kMemset, {}, 0, 1 << 30, {}, "no kernel"});
}
