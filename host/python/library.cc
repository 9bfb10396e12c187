// libassay_host.so: the python host's C++ part, called through ctypes: frames, mapping of regions,
// the timed block loop, the lockdown filter and the fault report. libc only: it uses no symbol of
// Python or PyTorch, so any interpreter can load it, and opens the CUDA driver with the first
// device memory. Call every function from the host's main thread.
#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../confine/landlock.h"
#include "../trace/kernel_trace.h"
#include "cuda/driver.h"
#include "wire/block_loop.h"
#include "wire/channel.h"
#include "wire/types.h"

namespace {

namespace cuda = assay::cuda;
using assay::wire::ArgumentSpec;
using assay::wire::BlockLoop;
using assay::wire::Control;
using assay::wire::Fault;
using assay::wire::Frame;
using assay::wire::KernelTrace;
using assay::wire::kRegionCount;
using assay::wire::Plan;
using assay::wire::Region;
using assay::wire::Report;

// Sizes and offsets, in the order in which wire.py lists them; the host refuses to start when one
// differs.
constexpr uint64_t kLayout[] = {
    sizeof(Frame),
    offsetof(Frame, kind),
    offsetof(Frame, args),
    sizeof(ArgumentSpec),
    offsetof(ArgumentSpec, role),
    offsetof(ArgumentSpec, kind),
    offsetof(ArgumentSpec, dtype),
    offsetof(ArgumentSpec, rank),
    offsetof(ArgumentSpec, shape),
    offsetof(ArgumentSpec, size_bytes),
    offsetof(ArgumentSpec, offset),
    offsetof(ArgumentSpec, oracle_offset),
    offsetof(ArgumentSpec, varies),
    offsetof(ArgumentSpec, twin),
    offsetof(ArgumentSpec, used_bytes),
    sizeof(Plan),
    offsetof(Plan, slot_count),
    offsetof(Plan, input_stride),
    offsetof(Plan, output_stride),
    offsetof(Plan, oracle_stride),
    offsetof(Plan, weights_stride),
    offsetof(Plan, arguments),
    sizeof(Control),
    offsetof(Control, armed),
    offsetof(Control, spin),
    offsetof(Control, results),
    offsetof(Control, replay),
    offsetof(Control, profile),
    offsetof(Control, trace),
    offsetof(Control, inputs_of),
    offsetof(Control, go),
    offsetof(Control, call_count),
    offsetof(Control, order),
    sizeof(Report),
    offsetof(Report, ready),
    offsetof(Report, done),
    offsetof(Report, settle_ns),
    offsetof(Report, replays),
    offsetof(Report, fault),
    offsetof(Report, fault_signal),
    offsetof(Report, fault_region),
    offsetof(Report, fault_address),
    offsetof(Report, fault_call),
    offsetof(Report, argument_count),
    offsetof(Report, failure),
    offsetof(Report, message),
    offsetof(Report, arguments),
    offsetof(Report, result_at),
    sizeof(BlockLoop),
    offsetof(BlockLoop, control),
    offsetof(BlockLoop, report),
    offsetof(BlockLoop, sequence),
    offsetof(BlockLoop, call_count),
    offsetof(BlockLoop, order),
    assay::wire::kMagic,
    assay::wire::kVersion,
    assay::wire::kRankMax,
    assay::wire::kArgumentsMax,
    assay::wire::kCallsMax,
    assay::wire::kResultsMax,
    assay::wire::kNameBytes,
    assay::wire::kMessageBytes,
};

// What the signal handler reads; it can be handed nothing, so there is one a process.
struct AttachedRegion {
  uint64_t begin;
  uint64_t size_bytes;
};
struct FaultContext {
  Report* report;
  AttachedRegion regions[kRegionCount];
};
FaultContext fault_context;

// The device, opened once a process, when its memory first comes.
struct Device {
  cuda::Driver driver;
  cuda::Context context = nullptr;  // null: not open
  cuda::GraphExecutable graph = nullptr;
};
Device device;

cuda::Result FailDevice(const cuda::Driver& driver, const char* what, cuda::Result result,
                        char* message, size_t message_bytes) {
  char words[200];
  driver.Describe(result, words, sizeof words);
  snprintf(message, message_bytes, "%s: %s", what, words);
  return result;
}

cuda::Result OpenDevice(char* message, size_t message_bytes) {
  if (device.context != nullptr) return device.driver.context_set(device.context);
  cuda::Driver driver;
  if (!cuda::OpenDriver(&driver, nullptr, message, message_bytes)) return cuda::kNoDevice;
  cuda::Device number = 0;
  cuda::Context context = nullptr;
  cuda::Result result = driver.init(0);
  if (result == cuda::kSuccess) result = driver.device_get(&number, 0);
  // The primary one, which PyTorch uses too.
  if (result == cuda::kSuccess) result = driver.primary_context_retain(&context, number);
  if (result == cuda::kSuccess) result = driver.context_set(context);
  if (result != cuda::kSuccess)
    return FailDevice(driver, "no CUDA context", result, message, message_bytes);
  device = {driver, context, nullptr};
  return result;
}

void ReportFault(int signal_number, siginfo_t* info, void*) {
  if (Report* report = fault_context.report; report != nullptr) {
    report->fault_signal = signal_number;
    report->fault_region = Region{0};
    report->fault_address = reinterpret_cast<uint64_t>(info->si_addr);
    report->fault_call = UINT32_MAX;
    for (uint32_t i = 0; i < kRegionCount; ++i) {
      const AttachedRegion& region = fault_context.regions[i];
      const uint64_t offset = reinterpret_cast<uint64_t>(info->si_addr) - region.begin;
      if (region.begin == 0 || offset >= region.size_bytes || info->si_code <= 0) continue;
      report->fault_region = static_cast<Region>(i);
      report->fault_address = offset;
    }
    __atomic_store_n(&report->fault, Fault::kSignal, __ATOMIC_RELEASE);
  }
  // SA_RESETHAND put the default action back: the return runs the faulting instruction again, which
  // ends the process. A signal that was sent (abort) has no instruction to run again.
  if (info->si_code <= 0) raise(signal_number);
}

}  // namespace

#define ASSAY_EXPORT extern "C" __attribute__((visibility("default")))

ASSAY_EXPORT const uint64_t* AssayLayout(uint32_t* count) {
  *count = sizeof kLayout / sizeof kLayout[0];
  return kLayout;
}

ASSAY_EXPORT int AssaySend(int socket, const Frame* frame) {
  return assay::wire::SendFrame(socket, *frame) ? 1 : 0;
}

// Waits without end for one frame. 0: a frame; else assay::wire::Receive's number. *fd is -1 or the
// caller's to close.
ASSAY_EXPORT int AssayReceive(int socket, Frame* frame, int* fd) {
  return static_cast<int>(assay::wire::ReceiveFrame(socket, frame, -1, fd));
}

// Maps `size_bytes` of a memfd, shared, as the given region. Null on failure, with *error set to
// errno. The descriptor stays the caller's.
ASSAY_EXPORT void* AssayMap(int fd, uint32_t region, uint64_t size_bytes, int writable,
                            int* error) {
  struct stat status;
  if (fstat(fd, &status) != 0) {
    *error = errno;
    return nullptr;
  }
  if (region >= kRegionCount || size_bytes == 0 ||
      static_cast<uint64_t>(status.st_size) < size_bytes) {
    *error = EINVAL;
    return nullptr;
  }
  const int protection = writable != 0 ? PROT_READ | PROT_WRITE : PROT_READ;
  void* address = mmap(nullptr, size_bytes, protection, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) {
    *error = errno;
    return nullptr;
  }
  fault_context.regions[region] = {reinterpret_cast<uint64_t>(address), size_bytes};
  return address;
}

ASSAY_EXPORT void AssayUnmap(void* address, uint64_t size_bytes) { munmap(address, size_bytes); }

// Maps device memory of the judge's for reading and writing: devices know no other mapping. 0, or
// CUDA's result with words for it in `message`. The descriptor stays the caller's.
ASSAY_EXPORT int AssayMapDevice(int fd, uint64_t size_bytes, uint64_t* address, char* message,
                                uint64_t message_bytes) {
  if (const cuda::Result result = OpenDevice(message, message_bytes); result != cuda::kSuccess)
    return result;
  const cuda::Driver& driver = device.driver;
  const cuda::AccessDescription access;
  void* const descriptor = reinterpret_cast<void*>(static_cast<intptr_t>(fd));
  cuda::AllocationHandle handle = 0;
  cuda::Result result = driver.import_handle(&handle, descriptor,
                                             cuda::AllocationProperties().requested_handle_types);
  if (result != cuda::kSuccess)
    return FailDevice(driver, "device memory cannot be imported", result, message, message_bytes);
  cuda::Pointer reserved = 0;
  bool mapped = false;
  result = driver.address_reserve(&reserved, size_bytes, 0, 0, 0);
  if (result == cuda::kSuccess) {
    result = driver.map(reserved, size_bytes, 0, handle, 0);
    mapped = result == cuda::kSuccess;
  }
  if (mapped) result = driver.set_access(reserved, size_bytes, &access, 1);
  driver.release(handle);  // the mapping keeps the memory
  if (result == cuda::kSuccess) {
    *address = reserved;
    return result;
  }
  if (mapped) driver.unmap(reserved, size_bytes);
  if (reserved != 0) driver.address_free(reserved, size_bytes);
  return FailDevice(driver, "device memory cannot be mapped", result, message, message_bytes);
}

// Ends a mapping of AssayMapDevice, once the device has done its work.
ASSAY_EXPORT void AssayUnmapDevice(uint64_t address, uint64_t size_bytes) {
  if (device.context == nullptr || device.driver.context_set(device.context) != cuda::kSuccess)
    return;
  device.driver.context_synchronize();
  device.driver.unmap(address, size_bytes);
  device.driver.address_free(address, size_bytes);
}

// Waits until the device has done all work of this process's, on whatever stream. CUDA's result.
ASSAY_EXPORT int AssaySynchronizeDevice() {
  if (device.context == nullptr) return cuda::kNoDevice;
  // Foreign code may have made another context current, whose work is not what counts.
  const cuda::Result result = device.driver.context_set(device.context);
  return result == cuda::kSuccess ? device.driver.context_synchronize() : result;
}

// Makes a graph that PyTorch captured ready for AssayLaunchGraph, in the place of the one before;
// the caller keeps it. CUDA's result.
ASSAY_EXPORT int AssayInstantiateGraph(cuda::Graph graph) {
  if (device.context == nullptr) return cuda::kNoDevice;
  const cuda::Driver& driver = device.driver;
  if (device.graph != nullptr) driver.graph_executable_destroy(device.graph);
  device.graph = nullptr;
  cuda::Result result = driver.context_set(device.context);
  if (result == cuda::kSuccess) result = driver.graph_instantiate(&device.graph, graph, 0);
  // The first launch would take what this takes.
  return result == cuda::kSuccess ? driver.graph_upload(device.graph, nullptr) : result;
}

ASSAY_EXPORT int AssayLaunchGraph() {
  if (device.graph == nullptr) return cuda::kInvalidValue;
  return device.driver.graph_launch(device.graph, nullptr);
}

// From here on, until it is stopped, a profiler that runs this process looks at what it launches;
// nothing happens where none does. CUDA's result, as of the other.
ASSAY_EXPORT int AssayStartProfiler() {
  return device.context == nullptr ? cuda::kNoDevice : device.driver.profiler_start();
}
ASSAY_EXPORT int AssayStopProfiler() {
  return device.context == nullptr ? cuda::kNoDevice : device.driver.profiler_stop();
}

// From here on, until it is stopped, CUPTI notes what kernels run, in the region kTrace; nothing
// happens where that was not attached.
ASSAY_EXPORT void AssayStartTrace() {
  const AttachedRegion& region = fault_context.regions[static_cast<uint32_t>(Region::kTrace)];
  if (region.size_bytes >= sizeof(KernelTrace))
    assay::trace::Start(reinterpret_cast<KernelTrace*>(region.begin));
}
ASSAY_EXPORT void AssayStopTrace() { assay::trace::Stop(); }

// CUDA's words for a result, NUL-terminated.
ASSAY_EXPORT void AssayDescribeDevice(int result, char* text, uint64_t text_bytes) {
  device.driver.Describe(static_cast<cuda::Result>(result), text, text_bytes);
}

ASSAY_EXPORT void AssayPrefault(const Plan* plan, const void* inputs, const void* outputs,
                                const void* weights) {
  assay::wire::Prefault(*plan, inputs, outputs, weights);
}

ASSAY_EXPORT int AssayAwaitArmed(BlockLoop* loop) { return assay::wire::AwaitArmed(*loop) ? 1 : 0; }
ASSAY_EXPORT void AssayAwaitGo(BlockLoop* loop) { assay::wire::AwaitGo(*loop); }
ASSAY_EXPORT void AssaySayDone(BlockLoop* loop, uint64_t settle_ns) {
  assay::wire::SayDone(*loop, settle_ns);
}

// From now on a crash leaves its signal and address in the report before the process dies of it. 0,
// or errno.
ASSAY_EXPORT int AssayReportFaults(Report* report) {
  static char stack[64 * 1024];
  fault_context.report = report;
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  if (sigaltstack(&alternate, nullptr) != 0) return errno;
  struct sigaction action {};
  action.sa_sigaction = ReportFault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
  for (const int signal_number : kSignals)
    if (sigaction(signal_number, &action, nullptr) != 0) return errno;
  return 0;
}

// Installs the BPF program (an array of sock_filter) that the descriptor holds on every thread of
// this process, for good; an empty file: none. 0, or errno; ENOEXEC for a file that is no such
// program, ESRCH when a thread could not be brought along.
ASSAY_EXPORT int AssayLockDown(int fd) {
  static sock_filter filters[4096];
  const ssize_t size_bytes = pread(fd, filters, sizeof filters, 0);
  if (size_bytes < 0) return errno;
  const size_t count = static_cast<size_t>(size_bytes) / sizeof(sock_filter);
  if (size_bytes == 0) return 0;
  if (count == 0 || count >= sizeof filters / sizeof filters[0] ||
      size_bytes % ssize_t{sizeof(sock_filter)} != 0)
    return ENOEXEC;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  sock_fprog program{static_cast<unsigned short>(count), filters};
  // Without SPEC_ALLOW an older kernel slows filtered threads down, and so the candidate alone.
  constexpr unsigned long kFlags = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW;
  const long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, kFlags, &program);
  if (result < 0) return errno;
  return result == 0 ? 0 : ESRCH;
}

// Gives up all privileges of a process that a nursery forked into a sandbox, as bubblewrap and
// confine do for a program that they execute. `devices`, which ends with a null: nodes that it may
// open. `filters`: descriptors with seccomp programs, in their order. 0, or errno.
ASSAY_EXPORT int AssayConfine(const char* const* devices, const int* filters, int filter_count) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  for (int capability = 0; prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0; ++capability) {
  }
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  if (syscall(SYS_capset, &header, none) != 0) return errno;
  // Another user's rights made it unreadable to the judge.
  if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0) return errno;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  if (const int error = ApplyLandlock(devices, false); error != 0) return error;
  for (int i = 0; i < filter_count; ++i)
    if (const int error = AssayLockDown(filters[i]); error != 0) return error;
  return 0;
}
