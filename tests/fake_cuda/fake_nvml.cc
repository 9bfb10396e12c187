// NVML of a machine whose one GPU is the fake driver's: its clock falls by 5 MHz each time it is
// asked for, held by the power cap from the second time on. Its node is /dev/nvidia3.
#include <string.h>

#define FAKE extern "C" __attribute__((visibility("default"))) int

namespace {
int initialised = 0, asked = 0, device = 0;
}

FAKE nvmlInit_v2() {
  ++initialised;
  return 0;
}
FAKE nvmlShutdown() { return --initialised < 0 ? 1 : 0; }
FAKE nvmlDeviceGetHandleByUUID(const char* uuid, void** handle) {
  if (initialised == 0) return 1;
  if (strcmp(uuid, "GPU-07070707-0707-0707-0707-070707070707") != 0) return 6;
  *handle = &device;
  return 0;
}
FAKE nvmlDeviceGetClockInfo(void* handle, unsigned kind, unsigned* mhz) {
  if (handle != &device || kind != 1) return 2;
  *mhz = 1980 - 5 * static_cast<unsigned>(asked++);
  return 0;
}
FAKE nvmlDeviceGetCurrentClocksThrottleReasons(void* handle, unsigned long long* bits) {
  if (handle != &device) return 2;
  *bits = asked > 1 ? 0x4 : 0x1;
  return 0;
}
FAKE nvmlDeviceGetMinorNumber(void* handle, unsigned* number) {
  if (handle != &device) return 2;
  *number = 3;
  return 0;
}
