// The judge's end of one sandboxed host: start, requests with deadlines, timed blocks, freeze, end.
//
// Theory of operation. A host is asleep (stopped by SIGSTOP, proven by its CPU time) except while
// it answers a request or runs a block. docs/protocol.md has the state diagram. Every word of a
// host is checked or bounded; a host that misbehaves is killed, and the trouble says how. Use a
// Host from the thread that started it.
#pragma once

#include <atomic>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/stop_token.h"
#include "hosts/freezer.h"
#include "hosts/library_time.h"
#include "hosts/nursery.h"
#include "machine/shared_region.h"
#include "sandbox/sandbox.h"
#include "wire/types.h"

namespace assay {

// The failure of a host.
struct HostTrouble {
  enum class Kind {
    kFailed,       // it answered with a failure: `failure`, `message`
    kDied,         // the process ended: `message` says how
    kOutOfMemory,  // memory ran out: `at_limit`, or the device's
    kTimedOut,     // no answer in time
    kFoul,         // caught: `rule`, `message`
    kVoid,         // it ran while its slots were filled: fill them with other values and try again
    kEnvironment,  // the machine's fault: no sandbox, no shared memory
    kInterrupted,  // the user asked to stop
  };
  Kind kind = Kind::kEnvironment;
  wire::Failure failure = wire::Failure::kEnvironment;
  std::string message;
  std::string rule;
  std::string output;         // what it printed, capped
  bool wrote_inputs = false;  // it, or another process while it ran
  bool of_opponent = false;   // in a pair: the opponent's host, so the candidate is not to blame
  bool at_limit = false;      // the process reached its memory limit
};
template <typename T>
using HostResult = std::expected<T, HostTrouble>;

std::unexpected<HostTrouble> HostFailed(HostTrouble::Kind kind, std::string message);
// Turns an error into trouble that is not the host's doing: kInterrupted, or kEnvironment.
std::unexpected<HostTrouble> TroubleFrom(const Error& error);
// Marks the trouble as the opponent's.
inline std::unexpected<HostTrouble> OpponentsTrouble(HostTrouble trouble) {
  trouble.of_opponent = true;
  return std::unexpected(std::move(trouble));
}

struct HostOptions {
  SandboxRequest sandbox;  // `descriptors` gets the socket (3) and the lockdown program (4) added
  std::optional<Nursery> nursery;  // forks it, if it is a Python host; null: it is executed
  std::string lockdown;            // BPF program for descriptor 4; may be empty
  double start_timeout_s = 60;
  double attach_timeout_s = 30;  // for sharing one region
  double end_timeout_s = 2;      // from the close of its socket on
  bool stays_awake = false;      // never stopped: no decision may rest on it
  std::string artifact_path;     // file below /tmp that Quit() returns; may be empty
  bool spin = true;              // the judge has its own core: judge and host spin on the doorbell
  // CPU time between waking and go that is not charged [ns], measured once it is stopped again; 0:
  // no check. Only for a host on one core, whose CPU time in a block is at most the block's time.
  int64_t wake_allowance_ns = 0;
  // It works on a device. Then only its main thread's waits for a core count: the driver's threads
  // wait behind it while it spins, and nothing waits for them. It may also take longer to wake: the
  // device takes a tenth of a millisecond to switch to it.
  bool on_device = false;
};

struct BlockResult {
  int64_t time_ns = 0;       // judge's clock, go to done, plus the charged head start
  int64_t settle_ns = 0;     // by the host's word; only a trusted host's counts
  int64_t ready_cpu_ns = 0;  // CPU time of all its threads from wake to ready
  int64_t ready_ns = 0;      // wake to ready: the most that a head start can hide
  int64_t uncharged_ns = 0;  // the part of ready_ns that is not in time_ns
  // On a device: the time of the judge's look at the outputs after done. It queues behind all work
  // that still runs there.
  int64_t look_ns = 0;
  // Results stayed where forward put them, and the judge cannot get all: calls reuse memory, so
  // that earlier results are gone, or results lie where the judge cannot read
  // (LiveSlots::RunBlock).
  bool must_copy = false;
  int64_t worked_before_ns = 0;  // CPU time from thaw to freeze, less the block's time
  // The disturbance by other processes [ns]: the longest wait for a core, from thaw to freeze, of
  // the judge, or of one of the host's threads as far as others can have caused it.
  int64_t waited_ns = 0;
};

// Output and artifact of a host that ended by itself.
struct HostLegacy {
  std::string output;  // what it printed, capped
  std::string artifact;
};

// Detects late writes: `take` samples outputs at the instant a block ends, `still_holds` compares
// them once the host is stopped.
struct OutputWatch {
  std::function<void()> take;
  std::function<bool()> still_holds;
};

class Host {
 public:
  // Spawn() starts the process, Greet() waits for its first frame; Start() does both. To start
  // several hosts side by side, spawn all before greeting the first.
  static HostResult<Host> Spawn(HostOptions options);
  HostResult<void> Greet();
  static HostResult<Host> Start(HostOptions options);
  Host(Host&&) noexcept = default;
  Host& operator=(Host&&) noexcept = default;

  // Shares a region with the host.
  HostResult<void> Attach(wire::Region region, const SharedRegion& memory, bool writable);
  // Shares device memory with the host. Returns, for kResults, the address that the host claims for
  // it.
  HostResult<uint64_t> AttachDevice(wire::Region region, int fd, uint64_t size_bytes);
  // Sends a request and waits for kDone, whose frame it returns. `fd`: sent along if >= 0.
  HostResult<wire::Frame> Request(wire::FrameKind kind, std::span<const uint64_t> args,
                                  double timeout_s, int fd = -1);
  // The two halves of Request(), for several hosts that work at once.
  HostResult<void> Post(wire::FrameKind kind, std::span<const uint64_t> args, int fd = -1);
  HostResult<wire::Frame> Collect(double timeout_s);
  // Returns how often it was asked to load something.
  uint64_t loads() const { return loads_; }

  // Asks the host to end by itself, and waits until it is gone. It must not be in blocks.
  HostResult<HostLegacy> Quit(double timeout_s);
  // Kills it without waiting for its end.
  void Kill() { sandbox_->Kill(); }
  // Stops it until the next request.
  HostResult<void> Sleep();
  // Binds all its threads to these cores; on a device the first one, which runs blocks, to the
  // first core alone.
  HostResult<void> Bind(const std::vector<int>& cpus);
  // Enters the block loop and freezes the host.
  HostResult<void> EnterBlocks(double timeout_s);
  // Thaws the host and makes it leave the block loop: it serves requests again.
  HostResult<void> LeaveBlocks(double timeout_s);
  // Runs one block over the slots in `order` and freezes the host again. Needs a frozen host and
  // filled slots. A host that used CPU time since its freeze gets no block: kVoid (late accounting
  // of the scheduler can cause one); the third in a row is a foul. A change of the outputs that
  // `watch` samples, after done, is a foul, too.
  HostResult<BlockResult> RunBlock(const OutputWatch& watch, std::span<const uint32_t> order,
                                   double timeout_s);
  // Runs a block without timing it: stops the host again and again, and `clock` samples where each
  // thread is.
  HostResult<void> WatchBlock(std::span<const uint32_t> order, double timeout_s,
                              LibraryClock* clock);

  // Sets what a python host does with results from the next block on; other hosts write into slots.
  void SetResults(wire::Results results) { control_.as<wire::Control>()->results = results; }
  wire::Results results() const { return control_.as<wire::Control>()->results; }

  // From the next block on a Python host's one call gets the inputs of this slot, and the module
  // and the outputs of the slot in its order; nullopt: the inputs of that slot.
  void TakeInputsOf(std::optional<uint32_t> slot) {
    control_.as<wire::Control>()->inputs_of = slot ? *slot + 1 : 0;
  }

  // From the next block on a trusted host on a device gets its order before it wakes, captures its
  // calls as a CUDA graph and launches that at go. Only if neither side's host runs a candidate's
  // code: that would know its work ahead, and the time before go is not charged.
  void Replay(bool replay) { control_.as<wire::Control>()->replay = replay ? 1 : 0; }
  // Returns true if it ran the last block as a graph; it may not be able to.
  bool Replayed() const { return report().replays == sequence_; }

  // From the next block on a host on a device starts its profiler for each block's calls; it ends
  // by exit() when it quits.
  void Profile() { control_.as<wire::Control>()->profile = 1; }

  // From the next block on a host on a device records the kernels of a block's calls by CUPTI in
  // the region kTrace, which must be attached. Not for timed blocks.
  void Trace() { control_.as<wire::Control>()->trace = 1; }

  int64_t PageFaults() const { return ProcessPageFaults(pid_); }
  const wire::Report& report() const { return *report_.as<wire::Report>(); }
  pid_t pid() const { return pid_; }
  // Returns the slot of one call of the last block; nullopt if it had no such call.
  std::optional<uint32_t> SlotOfCall(uint32_t call) const;
  // Returns the host's last message, made safe: bounded and printable.
  std::string Message() const;
  // Returns the wire::Failure that it gave with that text; nullopt: none.
  std::optional<wire::Failure> Failure() const;
  std::string Output() { return sandbox_->Output(); }
  void set_stop(StopToken stop) { stop_ = stop; }

 private:
  Host() = default;
  HostTrouble Death(std::string_view doing);
  // Receives its first frame, and its process id from the kernel.
  HostResult<void> AwaitHello();
  // Wakes the host for the next block, waits until it is ready, and returns the times of that.
  // `order_ahead`: calls that it is told before waking, or none.
  HostResult<BlockResult> Wake(std::span<const uint32_t> order_ahead, Deadline deadline);
  void SetOrder(std::span<const uint32_t> order);
  HostResult<void> AwaitWord(const uint32_t& word, uint32_t value, Deadline deadline, bool spin,
                             std::string_view doing);
  // A host in blocks sends nothing: a frame means that it left them.
  HostResult<void> LookForFrames(std::string_view doing);
  HostTrouble TimedOut(std::string_view doing, double timeout_s);
  HostTrouble Forgery();
  bool Interrupted() const { return stop_.stopped(); }

  std::optional<Sandbox> sandbox_;
  UniqueFd socket_;
  pid_t pid_ = 0;
  bool spin_ = true;
  size_t cores_ = 0;  // that it is bound to; 0: to none
  double start_timeout_s_ = 60, attach_timeout_s_ = 30, end_timeout_s_ = 2;
  int64_t spawned_ns_ = 0;
  int64_t wake_allowance_ns_ = 0;
  bool on_device_ = false, stays_awake_ = false;
  bool in_blocks_ = false;
  uint64_t loads_ = 0;
  uint32_t sequence_ = 0;
  int void_blocks_ = 0;  // in a row
  std::optional<Freezer> freezer_;
  SharedRegion control_, report_;
  StopToken stop_;
};

}  // namespace assay
