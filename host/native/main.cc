// The native host: loads one candidate and runs it on slots that the judge fills. Started by the
// judge inside a sandbox as `native_host [CANDIDATE]`, with the judge's socket as descriptor 3 and
// a seccomp program as descriptor 4 (an empty file: none). libc only. From kLoad on, the candidate
// may control this process, and the judge believes nothing that it says.
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../trace/kernel_trace.h"
#include "block_graph.h"
#include "calls.h"
#include "device.h"
#include "faults.h"
#include "lockdown.h"
#include "plan.h"
#include "regions.h"
#include "text.h"
#include "wire/channel.h"

namespace assay::native {
namespace {

constexpr int kSocket = 3;
constexpr int kLockdownFile = 4;
constexpr int kExitMalformed = 2;
constexpr int kExitDevice = 3;
constexpr uint32_t kLoaderTextBytesMax = 2000;
constexpr size_t kSparkBytes = 4096;

// Everything that a request may need; one a process, owned by main.
struct Host {
  const char* candidate_path;
  LockdownProgram lockdown;
  Regions regions;
  const AssayKernel* kernel;  // null until a shared library is loaded
  wire::BlockLoop loop;
  Calls calls;
  cuda::Driver driver;
  bool device_open;     // the driver, a context, and `spark`
  cuda::Pointer spark;  // memory for a little work
  cuda::Stream stream;  // for a shared library's calls on the device
  bool image_loaded;    // the candidate is a device image, and `device` runs it
  DeviceCalls device;
  BlockGraph graph;
};

wire::Report* ReportOf(const Host& host) {
  return reinterpret_cast<wire::Report*>(host.regions[wire::Region::kReport].data);
}
const wire::Plan* PlanOf(const Host& host) {
  return reinterpret_cast<const wire::Plan*>(host.regions[wire::Region::kPlan].data);
}

// Null where it was not attached.
wire::KernelTrace* TraceOf(const Host& host) {
  const Mapping& trace = host.regions[wire::Region::kTrace];
  const bool whole = trace.writable && trace.size_bytes >= sizeof(wire::KernelTrace);
  return whole ? reinterpret_cast<wire::KernelTrace*>(trace.data) : nullptr;
}

bool Answer(wire::FrameKind kind, uint64_t argument = 0) {
  return wire::SendFrame(kSocket, wire::Frame{wire::kMagic, kind, {argument}});
}

// Puts a text into the Report where there is one, then answers kFailed.
bool AnswerFailed(Host& host, wire::Failure failure, const char* what, const char* why = nullptr) {
  if (wire::Report* report = ReportOf(host); report != nullptr) {
    Text text(report->message, sizeof report->message);
    text.Add(what);
    if (why != nullptr) text.Add(": ").Add(why, kLoaderTextBytesMax);
  }
  return Answer(wire::FrameKind::kFailed, static_cast<uint64_t>(failure));
}

// All that takes the driver's time is done before blocks: it serves one process at a time, and may
// be taking another one down.
bool StartDevice(Host& host, Text& message) {
  if (!OpenDevice(host.driver, message)) return false;
  const cuda::Result result = host.driver.memory_allocate(&host.spark, kSparkBytes);
  return result == cuda::kSuccess || Fail(host.driver, message, "no memory on the device", result);
}

// Device memory needs the driver, which a host that is given none never opens.
bool AnswerAttachDevice(Host& host, const wire::Frame& frame, int fd) {
  if (fd < 0 || !MayLieOnDevice(frame.args[0]) || ReportOf(host) == nullptr) {
    if (fd >= 0) close(fd);
    return AnswerFailed(host, wire::Failure::kEnvironment, "that region is no device memory");
  }
  Text message(ReportOf(host)->message, sizeof ReportOf(host)->message);
  if (!host.device_open) host.device_open = StartDevice(host, message);
  Mapping& mapping = host.regions.of[frame.args[0]];
  if (!host.device_open || !MapDeviceMemory(host.driver, fd, frame.args[1], mapping, message))
    return Answer(wire::FrameKind::kFailed, static_cast<uint64_t>(wire::Failure::kEnvironment));
  mapping.on_device = true;
  return Answer(wire::FrameKind::kDone);
}

bool AnswerAttach(Host& host, const wire::Frame& frame, int fd) {
  if (frame.args[3] == static_cast<uint64_t>(Memory::kDevice))
    return AnswerAttachDevice(host, frame, fd);
  if (!Attach(host.regions, frame, fd))
    return AnswerFailed(host, wire::Failure::kEnvironment,
                        "the native host cannot map a shared region", strerror(errno));
  FaultContext& fault = TheFaultContext();
  fault.regions = &host.regions;
  fault.report = ReportOf(host);
  fault.plan = PlanOf(host);
  return Answer(wire::FrameKind::kDone);
}

// What dlerror() says, without the path that the user never wrote.
const char* LoaderText(const char* path) {
  const char* text = dlerror();
  if (text == nullptr) return "the loader gives no reason";
  const size_t length = strlen(path);
  return strncmp(text, path, length) == 0 && strncmp(text + length, ": ", 2) == 0
             ? text + length + 2
             : text;
}

bool IsOnDevice(const Host& host) { return host.regions[wire::Region::kOutputs].on_device; }

// Finds the entry in the loaded candidate and holds it against the plan. Answers.
bool AnswerEntry(Host& host, void* library) {
  const auto* kernel = static_cast<const AssayKernel*>(dlsym(library, "assay_kernel_v1"));
  Text message(ReportOf(host)->message, sizeof ReportOf(host)->message);
  if (kernel == nullptr) {
    message.Add("the candidate has no ASSAY_KERNEL (C: ASSAY_KERNEL_C); the problem needs:\n  ");
    AddDeclaration(*PlanOf(host), ASSAY_LANGUAGE_CPP, IsOnDevice(host), message);
    return Answer(wire::FrameKind::kFailed, static_cast<uint64_t>(wire::Failure::kCandidateEntry));
  }
  if (kernel->abi_version != ASSAY_ABI_VERSION || kernel->invoke == nullptr ||
      kernel->parameter_count > wire::kArgumentsMax + 1 ||  // with the stream
      (kernel->parameters == nullptr && kernel->parameter_count > 0)) {
    message.Add("the candidate's assay_kernel_v1 is not what ASSAY_KERNEL defines (ABI version ");
    message.Add(int64_t{ASSAY_ABI_VERSION}).Add("): include <assay/kernel.h> and use the macro");
    return Answer(wire::FrameKind::kFailed, static_cast<uint64_t>(wire::Failure::kCandidateEntry));
  }
  if (!SignatureFits(*kernel, *PlanOf(host), IsOnDevice(host), message))
    return Answer(wire::FrameKind::kFailed,
                  static_cast<uint64_t>(wire::Failure::kCandidateSignature));
  host.kernel = kernel;
  return Answer(wire::FrameKind::kDone);
}

bool AnswerLoadImage(Host& host, Text& message) {
  const Mapping& launches = host.regions[wire::Region::kLaunches];
  if (!host.device_open || launches.data == nullptr)
    return AnswerFailed(host, wire::Failure::kEnvironment,
                        "the native host was asked to load a device image before its launches");
  host.image_loaded = host.device.Load(host.driver, host.regions[wire::Region::kImage],
                                       *reinterpret_cast<const wire::Launches*>(launches.data),
                                       *PlanOf(host), message);
  if (!host.image_loaded)
    return Answer(wire::FrameKind::kFailed, static_cast<uint64_t>(wire::Failure::kCandidateLoad));
  return Answer(wire::FrameKind::kDone);
}

// A stream of this process's own, in order with the default one; graphs can be captured on it.
bool MakeStream(Host& host, Text& message) {
  if (!IsOnDevice(host) || host.regions[wire::Region::kImage].data != nullptr) return true;
  const cuda::Result result = host.driver.stream_create(&host.stream, 0);
  return result == cuda::kSuccess || Fail(host.driver, message, "no CUDA stream", result);
}

bool AnswerLoad(Host& host) {
  if (ReportOf(host) == nullptr || PlanOf(host) == nullptr)
    return AnswerFailed(host, wire::Failure::kEnvironment,
                        "the native host was asked to load before report and plan");
  if (host.kernel != nullptr || host.image_loaded)
    return AnswerFailed(host, wire::Failure::kEnvironment,
                        "the native host has loaded a candidate already");
  Text message(ReportOf(host)->message, sizeof ReportOf(host)->message);
  if (!PlanIsSound(*PlanOf(host), host.regions, message) || !MakeStream(host, message))
    return Answer(wire::FrameKind::kFailed, static_cast<uint64_t>(wire::Failure::kEnvironment));
  if (!InstallFaultHandlers())
    return AnswerFailed(host, wire::Failure::kEnvironment, "signal handlers", strerror(errno));
  // The filter goes first: the constructors that dlopen runs are foreign code.
  if (!InstallLockdown(host.lockdown))
    return AnswerFailed(host, wire::Failure::kEnvironment, "the seccomp filter", strerror(errno));
  TheFaultContext().doing = "while loading the candidate";
  if (host.regions[wire::Region::kImage].data != nullptr) return AnswerLoadImage(host, message);
  void* library = dlopen(host.candidate_path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return AnswerFailed(host, wire::Failure::kCandidateLoad, "the candidate does not load",
                        LoaderText(host.candidate_path));
  TheFaultContext().doing = "outside of a call";
  return AnswerEntry(host, library);
}

// After an error of the device's the context is lost, and this process with it.
[[noreturn]] void EndByDevice(Host& host, cuda::Result result) {
  char text[200];
  host.driver.Describe(result, text, sizeof text);
  Text message(ReportOf(host)->message, sizeof ReportOf(host)->message);
  message.Add("the device reports ").Add(text);
  __atomic_store_n(&ReportOf(host)->fault, wire::Fault::kDevice, __ATOMIC_RELEASE);
  fflush(nullptr);
  _exit(kExitDevice);
}

// Blocks on a device: `done` is said when its work is done. A little work before go makes the
// device turn to this process, which lasts as long as several short calls. `capture` makes a graph
// of a block whose order is known ahead; false: it is run call by call.
template <typename Run, typename Capture>
void RunDeviceBlocks(Host& host, uint32_t slot_count, Run run, Capture capture) {
  FaultContext& fault = TheFaultContext();
  wire::BlockLoop& loop = host.loop;
  while (wire::AwaitArmed(loop)) {
    const bool replays = loop.control->replay != 0 && capture(*loop.control);
    loop.report->replays = replays ? loop.sequence : 0;
    cuda::Result result = host.driver.set_words(host.spark, 0, kSparkBytes / 4, nullptr);
    if (result == cuda::kSuccess) result = host.driver.context_synchronize();
    const bool profiles = loop.control->profile != 0;
    if (profiles && result == cuda::kSuccess) result = host.driver.profiler_start();
    wire::KernelTrace* const traced = loop.control->trace != 0 ? TraceOf(host) : nullptr;
    if (traced != nullptr) trace::Start(traced);
    if (result != cuda::kSuccess) EndByDevice(host, result);
    wire::AwaitGo(loop);
    if (replays) result = host.graph.Launch();
    for (uint32_t i = 0; !replays && i < loop.call_count && result == cuda::kSuccess; ++i) {
      if (loop.order[i] >= slot_count) continue;
      fault.slot = loop.order[i];
      fault.call = i;
      result = run(loop.order[i]);
    }
    fault.call = kNoCall;
    if (result == cuda::kSuccess) result = host.driver.context_synchronize();
    if (profiles && result == cuda::kSuccess) result = host.driver.profiler_stop();
    if (traced != nullptr) trace::Stop();
    if (result != cuda::kSuccess) EndByDevice(host, result);
    wire::SayDone(loop, 0);
  }
}

bool RunImageBlocks(Host& host) {
  Text message(ReportOf(host)->message, sizeof ReportOf(host)->message);
  if (!PlanIsSound(*PlanOf(host), host.regions, message) ||
      !host.device.Prepare(*PlanOf(host), host.regions, message))
    return Answer(wire::FrameKind::kFailed, static_cast<uint64_t>(wire::Failure::kCandidateLoad));
  const uint32_t slot_count = host.device.slot_count();
  const auto capture = [&](const wire::Control& control) {
    return host.device.KnownAhead() && host.graph.Capture(host.driver, [&](cuda::Stream stream) {
      cuda::Result result = cuda::kSuccess;
      for (uint32_t i = 0; i < control.call_count && result == cuda::kSuccess; ++i)
        if (i < wire::kCallsMax && control.order[i] < slot_count)
          result = host.device.Run(control.order[i], stream);
      return result;
    });
  };
  RunDeviceBlocks(
      host, slot_count, [&](uint32_t slot) { return host.device.Run(slot, nullptr); }, capture);
  return Answer(wire::FrameKind::kDone);
}

bool AnswerBlocks(Host& host) {
  const Mapping& control = host.regions[wire::Region::kControl];
  if (control.data != nullptr) {
    host.loop.control = reinterpret_cast<const wire::Control*>(control.data);
    host.loop.report = ReportOf(host);
  }
  if (host.image_loaded && control.data != nullptr) return RunImageBlocks(host);
  if (host.kernel == nullptr || control.data == nullptr)
    return AnswerFailed(host, wire::Failure::kEnvironment,
                        "the native host was asked for blocks before load and control");
  // The plan may have changed since the load: the slots are laid out anew for each use.
  Text message(ReportOf(host)->message, sizeof ReportOf(host)->message);
  if (!PlanIsSound(*PlanOf(host), host.regions, message) ||
      !SignatureFits(*host.kernel, *PlanOf(host), IsOnDevice(host), message))
    return Answer(wire::FrameKind::kFailed, static_cast<uint64_t>(wire::Failure::kEnvironment));
  if (!host.calls.Prepare(*PlanOf(host), host.regions, host.stream))
    return AnswerFailed(host, wire::Failure::kEnvironment, "memory for the slots' arguments",
                        strerror(errno));
  if (IsOnDevice(host)) {
    RunDeviceBlocks(
        host, host.calls.slot_count(),
        [&](uint32_t slot) {
          host.calls.Run(*host.kernel, slot);
          return cuda::kSuccess;
        },
        [](const wire::Control&) { return false; });
    return Answer(wire::FrameKind::kDone);
  }
  const bool opened = OpenOutputs(host.regions);
  if (opened)
    wire::Prefault(*PlanOf(host), host.regions[wire::Region::kInputs].data,
                   host.regions[wire::Region::kOutputs].data,
                   host.regions[wire::Region::kWeights].data);
  if (!opened || !CloseUnusedSlots(*PlanOf(host), host.regions))
    return AnswerFailed(host, wire::Failure::kEnvironment, "the guards behind the outputs",
                        strerror(errno));
  RunBlocks(host.loop, *host.kernel, host.calls);
  return Answer(wire::FrameKind::kDone);
}

// Serves frames until the judge quits or is gone. Returns the exit status.
int Serve(Host& host) {
  while (true) {
    wire::Frame frame;
    int fd;
    switch (wire::ReceiveFrame(kSocket, &frame, -1, &fd)) {
      case wire::Receive::kFrame:
        break;
      case wire::Receive::kClosed:
        return 0;
      default:
        return kExitMalformed;
    }
    if (frame.kind != wire::FrameKind::kAttach && fd >= 0) close(fd);
    bool answered = false;
    switch (frame.kind) {
      case wire::FrameKind::kAttach:
        answered = AnswerAttach(host, frame, fd);
        break;
      case wire::FrameKind::kLoad:
        answered = AnswerLoad(host);
        break;
      case wire::FrameKind::kBlocks:
        answered = AnswerBlocks(host);
        break;
      case wire::FrameKind::kQuit:
        // What a profiler left for the end of the process is done by exit().
        if (host.loop.control != nullptr && host.loop.control->profile != 0) exit(0);
        return 0;
      default:
        return kExitMalformed;
    }
    if (!answered) return 0;  // the judge is gone
  }
}

int Main(int argument_count, char** arguments) {
  // Too large for the stack, and alive as long as the process.
  static Host host{};
  host.candidate_path = argument_count > 1 ? arguments[1] : "/candidate/kernel.so";
  setvbuf(stdout, nullptr, _IOLBF,
          BUFSIZ);  // what a candidate prints before it dies reaches the judge's log
  if (!ReadLockdown(kLockdownFile, host.lockdown)) {
    fprintf(stderr, "native_host: descriptor 4 holds no seccomp program: %s\n", strerror(errno));
    return kExitMalformed;
  }
  if (!Answer(wire::FrameKind::kHello, wire::kVersion)) {
    fprintf(stderr, "native_host: descriptor 3 is not the judge's socket\n");
    return kExitMalformed;
  }
  // Where there is a device CUDA starts at once, in all hosts that were spawned together. What goes
  // wrong is told when device memory is shared.
  if (getenv("ASSAY_DEVICE") != nullptr) {
    char unsaid[300];
    Text message(unsaid, sizeof unsaid);
    host.device_open = StartDevice(host, message);
  }
  return Serve(host);
}

}  // namespace
}  // namespace assay::native

int main(int argument_count, char** arguments) {
  const int status = assay::native::Main(argument_count, arguments);
  fflush(nullptr);
  _exit(status);  // without the candidate's destructors: they are foreign code with nothing left to
                  // do
}
