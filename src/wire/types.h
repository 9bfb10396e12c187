// The messages and shared memory between the judge and its hosts, as plain structs of fixed size.
// This folder uses libc alone: it is linked into processes that run foreign code. Every field that
// a host writes is untrusted when the judge reads it. docs/protocol.md has the state diagram.
#pragma once

#include <stdint.h>

namespace assay::wire {

inline constexpr uint32_t kMagic = 0x59415341;  // "ASAY"
inline constexpr uint32_t kVersion = 1;
inline constexpr uint32_t kRankMax = 8;
inline constexpr uint32_t kArgumentsMax = 2048;
inline constexpr uint32_t kCallsMax = 4096;     // calls in one timed block
inline constexpr uint32_t kResultsMax = 16384;  // outputs of a block's calls, with Results::kLeft
inline constexpr uint32_t kNameBytes = 120;
inline constexpr uint32_t kMessageBytes = 16 * 1024;

// Element types. The numbers are part of the wire format.
enum class DType : uint32_t {
  kFloat64 = 1,
  kFloat32 = 2,
  kFloat16 = 3,
  kBFloat16 = 4,
  kInt64 = 5,
  kInt32 = 6,
  kInt16 = 7,
  kInt8 = 8,
  kUInt8 = 9,
  kBool = 10,
  kFloat8E4M3 = 11,  // PyTorch's float8_e4m3fn: no infinities, NaN at 127 and 255
  kFloat8E5M2 = 12,
};

// Returns the bytes of one element; 0 for a number that is no DType.
inline uint32_t ElementBytes(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kInt64:
      return 8;
    case DType::kFloat32:
    case DType::kInt32:
      return 4;
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kInt16:
      return 2;
    case DType::kInt8:
    case DType::kUInt8:
    case DType::kBool:
    case DType::kFloat8E4M3:
    case DType::kFloat8E5M2:
      return 1;
  }
  return 0;
}

enum class Role : uint32_t { kInput = 1, kParameter = 2, kOutput = 3 };

// A scalar argument of forward() has no dtype; its value takes 8 bytes in each slot (int64, double,
// or 0 and 1).
enum class Kind : uint32_t { kTensor = 1, kInt = 2, kFloat = 3, kBool = 4 };

// One argument of a call. Inputs come first (forward's order), then parameters (state_dict order),
// then outputs: forward's results, then its changed inputs. The judge chooses the offsets: an
// input's is from the start of its slot in the inputs region, an output's from the start of its
// slot in the outputs region, a parameter's from the start of its slot in the weights region.
struct ArgumentSpec {
  char name[kNameBytes];  // NUL-terminated; a valid C identifier, made of forward's name or the
                          // parameter's dotted name
  Role role;
  Kind kind;
  DType dtype;    // tensors only
  uint32_t rank;  // tensors only; contiguous, row-major
  int64_t shape[kRankMax];
  uint64_t size_bytes;
  uint64_t offset;         // bytes
  uint64_t oracle_offset;  // outputs only: bytes from the start of the slot in the oracle region
                           // (float64 copies)
  uint64_t varies;         // parameters only: 1 = the judge may change it between calls
  // An input that forward changes in place has a twin, the output that holds it after the call.
  uint64_t twin;  // of either: 1 + the other's index; else 0
  // Bytes that a call must touch. Inputs: 0, or of a view without the gaps in its memory. Outputs
  // with a twin: of the elements that the first draw changed.
  uint64_t used_bytes;
};
static_assert(sizeof(ArgumentSpec) == kNameBytes + 16 + 8 * kRankMax + 48);

// The shared regions. Each is a memfd or device memory, sent with an Attach frame.
enum class Region : uint32_t {
  kControl = 1,    // Control; the judge writes, the host reads
  kReport = 2,     // Report; the host writes, the judge reads and trusts nothing
  kPlan = 3,       // Plan; the judge writes, the host reads
  kInputs = 4,     // slots of inputs; read-only to hosts, except for the oracle, which fills them
  kOutputs = 5,    // slots of outputs; the host writes
  kOracle = 6,     // slots of float64 outputs; oracle only
  kWeights = 7,    // slots of parameters and buffers, which the judge varies; read-only to hosts,
                   // except for the oracle, which has one slot and stores them once
  kNumbers = 8,    // if kInputs lies on a device: slots as there, with the numbers alone
  kImage = 9,      // a device image (wire/device_image.h)
  kLaunches = 10,  // Launches (wire/launches.h)
  kTrace = 11,     // KernelTrace; the host writes, the judge reads and trusts nothing
  kResults = 12    // device memory for a python host's results, with Results::kLeft
};
inline constexpr uint32_t kRegionCount = 13;

// The layout of the slots. The judge fills it once the problem is described.
struct Plan {
  uint32_t argument_count;
  uint32_t slot_count;
  uint64_t input_stride;  // bytes from one slot's inputs to the next's
  uint64_t output_stride;
  uint64_t oracle_stride;
  uint64_t weights_stride;  // 0: the problem has none
  ArgumentSpec arguments[kArgumentsMax];
};

// Returns true for an output that is a changed input, and no result of forward.
inline bool IsChangedInput(const ArgumentSpec& argument) {
  return argument.role == Role::kOutput && argument.twin != 0;
}

// Returns the argument whose memory hosts under test use for this one: a changed input lies among
// the outputs, where the judge lays its value before each block. `plan` must be sound.
inline const ArgumentSpec& PlaceOf(const Plan& plan, const ArgumentSpec& argument) {
  return argument.role == Role::kInput && argument.twin != 0 ? plan.arguments[argument.twin - 1]
                                                             : argument;
}

// Returns the number of arguments that a native kernel gets: a changed input comes but once.
inline uint32_t PassedCount(const Plan& plan) {
  uint32_t count = plan.argument_count;
  while (count > 0 && IsChangedInput(plan.arguments[count - 1])) --count;
  return count;
}

inline constexpr uint32_t kLeaveBlocks =
    0xFFFFFFFF;  // call_count that ends the loop: back to frames
// The way in which a python host hands over the results of a block's calls.
enum class Results : uint32_t {
  kIntoSlots = 0,  // copies them into the slots, within the block
  kKept = 1,       // does not hand them over: a trusted host on a device
  kLeft = 2,       // leaves them in forward's memory and writes the addresses to Report::result_at;
                   // on a device, to lie in kResults
};
// The judge writes it during timed blocks. Sequence numbers only grow.
struct Control {
  alignas(64) uint32_t armed;  // block to get ready for; futex word
  uint32_t spin;               // 1: hosts and judge spin on go and done; 0: they wait on futexes
  Results results;
  uint32_t replay;            // 1: order and call_count are written before armed; a trusted host on
                              // a device captures the block's calls as a CUDA graph before ready
  uint32_t profile;           // 1: a host on a device starts a profiler before ready, stops it
                              // before done, and ends by exit() on kQuit
  uint32_t trace;             // 1: a host on a device has CUPTI record the kernels of the block's
                              // calls, and writes kTrace before done
  uint32_t inputs_of;         // a Python host's one call gets the inputs of slot inputs_of - 1, and
                              // the module and the outputs of its own; 0: all of its own
  alignas(64) uint32_t go;    // block to run; futex word
  uint32_t call_count;        // written before go
  uint32_t order[kCallsMax];  // slots to run, in this order; written before go
};

enum class Fault : uint32_t {
  kNone = 0,
  kSignal = 1,
  kDevice = 2  // the device refused or lost the work: `message` says how, and the process ends
};

// The host writes it. The judge believes settle_ns of a trusted host alone.
struct Report {
  alignas(64) uint32_t ready;  // block that the host is ready for; futex word
  alignas(64) uint32_t done;   // block whose outputs are complete; futex word
  uint64_t settle_ns;       // time within the block spent copying results into slots (python hosts)
  uint32_t replays;         // block that this host runs as a graph; written before ready
  alignas(64) Fault fault;  // reason why the process is about to die, if it knows one
  int32_t fault_signal;
  Region fault_region;                    // region of the address, if the host knows it; else 0
  uint64_t fault_address;                 // from the start of that region (before it: less than 0,
                                          // modulo 2^64), or absolute
  uint32_t fault_call;                    // index in order[] of the call that ran, if known
  uint32_t argument_count;                // of `arguments`
  uint64_t failure;                       // Failure of `message`; 0: not said
  char message[kMessageBytes];            // NUL-terminated text of the last failure
  ArgumentSpec arguments[kArgumentsMax];  // the reference host's description of the problem
  // Results::kLeft: the address of each output of each call, in the block's order, in the host's
  // own memory; 0: none. If slots repeat in order[], each stands once, where it came first, with
  // the outputs of its last call. Written before done.
  uint64_t result_at[kResultsMax];
};

// The kernels that ran on the device in the calls of one block, as CUPTI recorded them.
inline constexpr uint32_t kTracedKernelsMax = 128;  // names; kernels beyond add to untold_ns
inline constexpr uint32_t kTracedNameBytes = 496;
struct TracedKernel {
  uint64_t time_ns;  // of all its runs
  uint64_t runs;
  char name[kTracedNameBytes];  // NUL-terminated, cut if longer; mangled, as in the image
};
struct KernelTrace {
  uint32_t kernel_count;
  uint32_t failed;     // 1: nothing could be recorded; `message` says why
  uint64_t untold_ns;  // time of kernels for which there was no room
  char message[kTracedNameBytes];
  TracedKernel kernels[kTracedKernelsMax];
};
static_assert(sizeof(KernelTrace) == (kTracedKernelsMax + 1) * sizeof(TracedKernel));

// Frames over a SOCK_SEQPACKET socketpair: one struct a message, at most one descriptor beside it.
enum class FrameKind : uint32_t {
  // judge to host
  kAttach = 1,        // args: Region, size in bytes, writable, 0 host or 1 device memory; carries
                      // the memfd, or the device memory's descriptor; the answer to kResults has
                      // its address in the host
  kLoad = 2,          // load the problem or the candidate; see each host
  kStoreWeights = 3,  // reference hosts: the state dict and the weights region; see reference.py
  kDraw = 4,  // oracle: args: seed, draw kind, slot, seed and bits of a nudge: write one draw of
              // get_inputs() into the slot
  kEvaluate =
      5,        // oracle: args: slot, precision (0 native into outputs, 1 float64 into oracle); 2:
                // counts what is not finite in the slot's outputs
  kBlocks = 6,  // enter the loop of timed blocks; answered when the loop is left
  kQuit = 7,
  kEstimate = 8,  // reference host: bytes and work of the problem, without allocating it
  kProfile = 9,   // reference host: time forward by operator; args: milliseconds to spend
  kMutants = 10,  // oracle: list the mutants of the reference; args: slot of a draw
  kMutate = 11,   // oracle: args: number in that list, slot of the draw, slot to write to
  kFill = 12,     // oracle: args: seed, first slot, count: ordinary draws and their native outputs
  kSelect = 13,   // oracle: compare indices by what they select; see selections.py
  kStartDevice = 14,  // python hosts: start CUDA now, and libraries (args: a sum of kUses...);
                      // otherwise the first request that may need CUDA does
  kCheck = 15,        // oracle: ask the problem's own check about outputs; see own_check.py
  kState = 16,  // oracle and Python candidates: the state that forward changes; see module_state.py
  // host to judge
  kHello = 100,   // args: kVersion, role; the kernel attaches the sender's pid
  kDone = 101,    // args: as the request defines
  kFailed = 102,  // args: Failure; text in Report::message
};

// Reasons of a failed request. The reference host uses kProblem..., candidate hosts kCandidate...
enum class Failure : uint64_t {
  kProblemLoad = 1,      // not Python, no Model, an exception while loading
  kProblemSet = 2,       // --set names no constant
  kProblemInputs = 3,    // get_inputs or get_init_inputs throws or returns what cannot be passed
  kProblemForward = 4,   // forward throws
  kProblemOutput = 5,    // outputs of a type that cannot be judged
  kProblemRandom = 6,    // forward gives other outputs under another seed
  kDrawMeaningless = 7,  // this draw makes the reference give NaN or infinity, or throw
  kFloat64Unsupported = 8,
  kProblemCheck = 9,     // the problem's own check throws, or gives neither None nor text
  kProblemNotHere = 10,  // the problem's file needs what this machine lacks
  kCandidateLoad = 20,  // does not load: no such symbol, unresolved symbols, an exception on import
  kCandidateEntry = 21,  // no ASSAY_KERNEL, no ModelNew
  kCandidateSignature = 22,
  kCandidateForward = 23,  // python: forward throws
  kCandidateOutput = 24,   // python: wrong count, shape or dtype
  kCandidateNotHere = 25,  // python: the candidate needs what this machine lacks
  kEnvironment = 40,       // PyTorch missing, a system call refused
};

struct Frame {
  uint32_t magic;
  FrameKind kind;
  uint64_t args[8];
};
static_assert(sizeof(Frame) == 72);

// Libraries of the vendor's, whose start would be in a first call: cuBLAS and cuDNN.
inline constexpr uint64_t kUsesProducts = 1, kUsesConvolutions = 2;

// Ways to make a draw's inputs from get_inputs(). The numbers are part of the verdict's record.
enum class DrawKind : uint64_t {
  kOrdinary = 0,
  kLargeOffset = 1,  // mean 1000, deviation 0.1
  kWideRange = 2,    // magnitudes over many decades
  kTinyScale = 3,
  kHugeScale = 4,
  kSignedZeros = 5,
  kTies = 6,  // few distinct values
  kSmallIntegers = 7,
  kZeroOne = 8,
  kOutlier = 9,         // one large value a row
  kSpecialValues = 10,  // some NaN, infinity and denormals
  kSigns = 11,          // random signs for inputs of one sign
  kPatch = 12,          // a run of rows unlike all others
};
inline constexpr uint64_t kDrawKindCount = 13;

}  // namespace assay::wire
