// Theory of operation. The handler may run in any thread, at any point of foreign code, with a
// broken heap: it allocates nothing, takes no lock, and writes to the Report alone. It describes
// the address by the regions: a fault in the inputs or weights is a write, since they are mapped
// read-only; a fault in the guards beside a region, or behind the slots in use, is an access past
// its end. Then it restores the default action and sends the signal again, so that the exit status
// is true: a processor's fault recurs on return, but abort()'s signal does not.
#include "faults.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "text.h"

namespace assay::native {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr uint64_t kNearBytes = uint64_t{1} << 20;  // as far as the guards around a region reach
constexpr size_t kStackBytes = 64 * 1024;

alignas(16) unsigned char alternate_stack[kStackBytes];  // the kernel needs its address for as long
                                                         // as we live
FaultContext fault_context{nullptr, nullptr, nullptr, kNoCall, 0, "before loading the candidate"};

const char* SignalName(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "SIGSEGV";
    case SIGBUS:
      return "SIGBUS";
    case SIGFPE:
      return "SIGFPE";
    case SIGILL:
      return "SIGILL";
    default:
      return "SIGABRT";
  }
}

// "write to ", "read of " or "access to ", as far as the processor says.
const char* AccessName(const void* context) {
#if defined(__x86_64__)
  constexpr greg_t kWriteBit = 2;
  const greg_t error = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR];
  return (error & kWriteBit) != 0 ? "write to " : "read of ";
#else
  (void)context;
  return "access to ";
#endif
}

// True when the address lies near the stack pointer: no other mapping is that near to the main
// thread's stack.
bool IsNearStack(uint64_t address, const void* context) {
#if defined(__x86_64__)
  constexpr uint64_t kNear = uint64_t{16} << 20;
  const uint64_t stack =
      static_cast<uint64_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RSP]);
  return address < stack ? stack - address < kNear : address - stack < kNear;
#else
  (void)address;
  (void)context;
  return false;
#endif
}

struct KnownRegion {
  wire::Region region;
  wire::Role role;
  const char* name;
};
constexpr KnownRegion kKnownRegions[] = {
    {wire::Region::kInputs, wire::Role::kInput, "inputs"},
    {wire::Region::kOutputs, wire::Role::kOutput, "outputs"},
    {wire::Region::kWeights, wire::Role::kParameter, "parameters"},
};

// Names the argument whose start is nearest below (or else first above) an offset in a region, as
// seen from the slot of the call that runs.
void AddNearestArgument(const KnownRegion& known, int64_t offset, Text& text) {
  const wire::Plan* plan = fault_context.plan;
  if (plan == nullptr) return;
  const int64_t stride = static_cast<int64_t>(StrideOf(*plan, known.role));
  int64_t slot = fault_context.call == kNoCall ? 0 : int64_t{fault_context.slot};
  if (fault_context.call == kNoCall && stride > 0 && plan->slot_count > 0 && offset > 0) {
    slot = offset / stride;
    if (slot >= plan->slot_count) slot = plan->slot_count - 1;
  }
  const int64_t within = offset - slot * stride;
  const wire::ArgumentSpec* nearest = nullptr;
  const uint32_t count =
      plan->argument_count < wire::kArgumentsMax ? plan->argument_count : wire::kArgumentsMax;
  for (uint32_t i = 0; i < count; ++i) {
    const wire::ArgumentSpec& argument = plan->arguments[i];
    if (argument.role != known.role) continue;
    const bool below = static_cast<int64_t>(argument.offset) <= within;
    const bool nearest_below =
        nearest != nullptr && static_cast<int64_t>(nearest->offset) <= within;
    if (nearest == nullptr || (below && (!nearest_below || argument.offset > nearest->offset)))
      nearest = &argument;
  }
  if (nearest == nullptr) return;
  const int64_t distance = within - static_cast<int64_t>(nearest->offset);
  const int64_t size = static_cast<int64_t>(nearest->size_bytes);
  if (distance < 0)
    text.Add(-distance).Add(" bytes before the start of ");
  else if (distance < size)
    text.Add("byte ").Add(distance).Add(" of ");
  else
    text.Add(distance - size).Add(" bytes past the end of ");
  text.Add(nearest->name, wire::kNameBytes);
}

// Describes the address, and puts it into the Report: from the start of a region where it lies in
// one or in the guards beside it.
void AddAddress(const void* fault_address, const void* context, Text& text) {
  const uint64_t address = reinterpret_cast<uint64_t>(fault_address);
  constexpr uint64_t kNullPageBytes = 4096;
  fault_context.report->fault_address = address;
  text.Add(": ");
  if (address < kNullPageBytes) {
    text.Add(AccessName(context)).Add(address == 0 ? "a null pointer" : "an address near null, ");
    if (address != 0) text.AddHex(address);
    return;
  }
  for (const KnownRegion& known : kKnownRegions) {
    if (fault_context.regions == nullptr) break;
    const Mapping& mapping = (*fault_context.regions)[known.region];
    if (mapping.data == nullptr || mapping.on_device) continue;
    const uint64_t begin = reinterpret_cast<uint64_t>(mapping.data);
    if (address < begin - kNearBytes || address >= begin + mapping.size_bytes + kNearBytes)
      continue;
    const bool inside = address >= begin && address < begin + mapping.size_bytes;
    fault_context.report->fault_region = known.region;
    fault_context.report->fault_address = address - begin;
    if (inside && !mapping.writable)
      text.Add("write to the ").Add(known.name).Add(", which are read-only (");
    else
      text.Add(AccessName(context)).Add("memory beside the ").Add(known.name).Add(" (");
    AddNearestArgument(known, static_cast<int64_t>(address - begin), text);
    text.Add(")");
    return;
  }
  text.Add(AccessName(context)).Add("address ").AddHex(address);
  if (IsNearStack(address, context)) text.Add(" (the stack is probably full)");
}

void Describe(int signal, const siginfo_t& information, const void* context) {
  wire::Report& report = *fault_context.report;
  const uint32_t call = fault_context.call;
  report.fault_signal = signal;
  report.fault_region = wire::Region{0};
  report.fault_address = 0;
  report.fault_call = call;
  Text text(report.message, sizeof report.message);
  text.Add("signal ").Add(int64_t{signal}).Add(" (").Add(SignalName(signal)).Add(") ");
  if (call == kNoCall)
    text.Add(fault_context.doing);
  else
    text.Add("in call ")
        .Add(int64_t{call} + 1)
        .Add(" of the block, slot ")
        .Add(int64_t{fault_context.slot});
  // A signal that a process sent (si_code <= 0) carries no address.
  const bool has_address = information.si_code > 0;
  switch (signal) {
    case SIGSEGV:
    case SIGBUS:
      if (has_address) AddAddress(information.si_addr, context, text);
      break;
    case SIGFPE:
      if (has_address)
        text.Add(": integer division by zero, or a trapped floating-point operation");
      break;
    case SIGILL:
      if (has_address)
        text.Add(": an instruction that this processor lacks, or a trap of the compiler's");
      break;
    default:
      text.Add(
          ": abort() was called (an uncaught exception, assert, or heap damage that the C library "
          "saw)");
  }
  __atomic_store_n(&report.fault, wire::Fault::kSignal, __ATOMIC_RELEASE);
}

void OnFault(int signal, siginfo_t* information, void* context) {
  const int error = errno;
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action,
            nullptr);  // before anything else: a second fault, in here, must end it
  if (fault_context.report != nullptr) Describe(signal, *information, context);
  syscall(SYS_tgkill, getpid(), syscall(SYS_gettid),
          signal);  // delivered on return, when it is unblocked
  errno = error;
}

}  // namespace

FaultContext& TheFaultContext() { return fault_context; }

bool InstallFaultHandlers() {
  stack_t stack;
  memset(&stack, 0, sizeof stack);
  stack.ss_sp = alternate_stack;
  stack.ss_size = sizeof alternate_stack;
  if (sigaltstack(&stack, nullptr) != 0) return false;
  for (const int signal : kSignals) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = OnFault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    if (sigaction(signal, &action, nullptr) != 0) return false;
  }
  return true;
}

}  // namespace assay::native
