// The judge's end of one sandboxed host: start, requests with deadlines, timed blocks, freeze, end.
//
// Theory of operation. A host is asleep (stopped by SIGSTOP, proven by its CPU time) except while
// it answers a request or runs a block. docs/protocol.md has the state diagram. Everything that a
// host says is checked or bounded; a host that misbehaves is killed and the trouble says how. Use a
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
#include "machine/shared_region.h"
#include "sandbox/sandbox.h"
#include "wire/types.h"

namespace assay {

// What went wrong with a host.
struct HostTrouble {
  enum class Kind {
    kFailed,       // it answered with a failure: `failure` and `message`
    kDied,         // the process ended: `message` says how
    kOutOfMemory,  // it ended at its memory limit
    kTimedOut,     // no answer in time
    kFoul,         // caught: `rule`, `message`
    kVoid,  // it ran while its slots were being filled: fill them anew, with other values, and try
            // again
    kEnvironment,  // this machine: the sandbox does not start, no shared memory
    kInterrupted,  // the user asked to stop
  };
  Kind kind = Kind::kEnvironment;
  wire::Failure failure = wire::Failure::kEnvironment;
  std::string message;
  std::string rule;
  std::string output;         // what it printed, capped
  bool wrote_inputs = false;  // or others did, while it ran
  bool of_opponent = false;   // in a pair: the opponent's, and the candidate is not to blame

  Error ToError(ErrorKind error_kind) const { return Error{error_kind, message}; }
};
template <typename T>
using HostResult = std::expected<T, HostTrouble>;

std::unexpected<HostTrouble> HostFailed(HostTrouble::Kind kind, std::string message);
// The trouble as the opponent's.
inline std::unexpected<HostTrouble> OpponentsTrouble(HostTrouble trouble) {
  trouble.of_opponent = true;
  return std::unexpected(std::move(trouble));
}

struct HostOptions {
  SandboxRequest sandbox;  // `descriptors` gets the socket (3) and the lockdown program (4) added
  std::string lockdown;    // BPF program for descriptor 4; may be empty
  double start_timeout_s = 60;
  double attach_timeout_s = 30;  // for sharing one region
  double end_timeout_s = 2;      // once its socket is closed
  bool stays_awake = false;      // never stopped: nothing that is decided may come from it
  std::string artifact_path;     // of a file below /tmp that Quit() gives; may be empty
  bool spin = true;              // the judge has a core of its own: both sides spin on the doorbell
  // What it may work between waking and go for nothing [ns], by its CPU time once it is stopped
  // again; 0: not looked at. Only for a host on one core, whose CPU time in a block is at most the
  // block's.
  int64_t wake_allowance_ns = 0;
  // It works on a device. Only its main thread's waits for a core are told: threads of the driver
  // wait behind it for as long as it spins, and nothing waits for them. And it may take longer to
  // wake: it makes the device turn to it, which lasts a tenth of a millisecond.
  bool on_device = false;
};

struct BlockResult {
  int64_t time_ns = 0;       // judge's clock, go to done, plus a late answer's excess
  int64_t settle_ns = 0;     // as the host says; only a trusted host's counts
  int64_t ready_cpu_ns = 0;  // CPU time of all its threads within that time
  int64_t ready_ns = 0;      // wake to ready: what a head start could hide
  int64_t uncharged_ns = 0;  // what of it is not in time_ns
  // On a device: how long the judge's look at the outputs took once done was said. It has its turn
  // there after whatever still works.
  int64_t look_ns = 0;
  // Results were left where forward put them, and the judge has not all of them: they share memory
  // from call to call, so that there is none of earlier calls, or lie where it cannot read
  // (LiveSlots::RunBlock).
  bool must_copy = false;
  int64_t worked_before_ns = 0;  // CPU time from thaw to freeze, less the block's wall-clock time
  // The longest that one of its threads, or the judge's, waited for a core from thaw to freeze:
  // what other processes disturbed.
  int64_t waited_ns = 0;
};

// What a host leaves that ended as it was told to.
struct HostLegacy {
  std::string output;  // what it printed, capped
  std::string artifact;
};

// How outputs are held against themselves: at the instant a block ends, and once the host is
// stopped.
struct OutputWatch {
  std::function<void()> take;
  std::function<bool()> still_holds;
};

class Host {
 public:
  // Spawn() starts the process, Greet() waits until it is there; Start() does both. Several hosts
  // start side by side when all are spawned before the first is greeted.
  static HostResult<Host> Spawn(HostOptions options);
  HostResult<void> Greet();
  static HostResult<Host> Start(HostOptions options);
  Host(Host&&) noexcept = default;
  Host& operator=(Host&&) noexcept = default;

  // Shares a region with the host.
  HostResult<void> Attach(wire::Region region, const SharedRegion& memory, bool writable);
  // The same with memory of the device's. For kResults: where the host says that it has it.
  HostResult<uint64_t> AttachDevice(wire::Region region, int fd, uint64_t size_bytes);
  // Sends a request and waits for kDone; the returned frame has its args. `fd` goes along when >=
  // 0.
  HostResult<wire::Frame> Request(wire::FrameKind kind, std::span<const uint64_t> args,
                                  double timeout_s, int fd = -1);
  // The two halves of Request(), so that several hosts can work on theirs at once.
  HostResult<void> Post(wire::FrameKind kind, std::span<const uint64_t> args, int fd = -1);
  HostResult<wire::Frame> Collect(double timeout_s);

  // Has it end by itself, and waits until it is gone. It must not be in blocks.
  HostResult<HostLegacy> Quit(double timeout_s);
  // Ends it, without waiting until it is gone.
  void Kill() { sandbox_->Kill(); }
  // Stops it until the next request.
  HostResult<void> Sleep();
  // Binds all its threads to these cores.
  HostResult<void> Bind(const std::vector<int>& cpus);
  // Enters the block loop and freezes the host.
  HostResult<void> EnterBlocks(double timeout_s);
  // Thaws the host and has it leave the loop: it serves requests again.
  HostResult<void> LeaveBlocks(double timeout_s);
  // Runs one block over the slots in `order` and freezes the host again. Before: the host is
  // frozen, slots are filled. A host that used CPU time since it was frozen gets no block: kVoid (a
  // scheduler's late accounting may do that once); three times in a row is a foul. So is changing
  // what `watch` looks at after it said done.
  HostResult<BlockResult> RunBlock(const OutputWatch& watch, std::span<const uint32_t> order,
                                   double timeout_s);
  // A block that is not timed: the host is stopped again and again as it runs, and `clock` sees
  // where.
  HostResult<void> WatchBlock(std::span<const uint32_t> order, double timeout_s,
                              LibraryClock* clock);

  // What becomes of results from the next block on, in a python host; others write into slots.
  void SetResults(wire::Results results) { control_.as<wire::Control>()->results = results; }
  wire::Results results() const { return control_.as<wire::Control>()->results; }

  // From the next block on a host of the judge's trust on a device is told its order before it
  // wakes, captures its calls as a CUDA graph and launches that at go. Only where neither side's
  // host runs code of a candidate's: it would know its work ahead, and nothing is charged for the
  // time before go.
  void Replay(bool replay) { control_.as<wire::Control>()->replay = replay ? 1 : 0; }
  // Whether it ran the last block so; it may not be able to.
  bool Replayed() const { return report().replays == sequence_; }

  // From the next block on a host on a device starts its profiler for each block's calls, and ends
  // by exit() when it quits.
  void Profile() { control_.as<wire::Control>()->profile = 1; }

  // From the next block on a host on a device has CUPTI note the kernels of a block's calls in the
  // region kTrace, which it must have been given. Not in blocks that are timed.
  void Trace() { control_.as<wire::Control>()->trace = 1; }

  int64_t PageFaults() const { return ProcessPageFaults(pid_); }
  const wire::Report& report() const { return *report_.as<wire::Report>(); }
  pid_t pid() const { return pid_; }
  // The last message that the host left, made safe: bounded and printable.
  std::string Message() const;
  std::string Output() { return sandbox_->Output(); }
  void set_stop(StopToken stop) { stop_ = stop; }

 private:
  Host() = default;
  HostTrouble Death(std::string_view doing);
  // Its first frame, and the process that the kernel says it is from.
  HostResult<void> AwaitHello();
  // Wakes the host for the next block and waits until it is ready; how long that took.
  // `order_ahead`: calls that it is told before, or none.
  HostResult<BlockResult> Wake(std::span<const uint32_t> order_ahead, Deadline deadline);
  void SetOrder(std::span<const uint32_t> order);
  HostResult<void> AwaitWord(const uint32_t& word, uint32_t value, Deadline deadline, bool spin,
                             std::string_view doing);
  // A host in blocks has nothing to send: one that does has left them.
  HostResult<void> LookForFrames(std::string_view doing);
  HostTrouble TimedOut(std::string_view doing, double timeout_s);
  HostTrouble Forgery();
  bool Interrupted() const { return stop_.stopped(); }

  std::optional<Sandbox> sandbox_;
  UniqueFd socket_;
  pid_t pid_ = 0;
  bool spin_ = true;
  double start_timeout_s_ = 60, attach_timeout_s_ = 30, end_timeout_s_ = 2;
  int64_t spawned_ns_ = 0;
  int64_t wake_allowance_ns_ = 0;
  bool on_device_ = false, stays_awake_ = false;
  bool in_blocks_ = false;
  uint32_t sequence_ = 0;
  int void_blocks_ = 0;  // in a row
  std::optional<Freezer> freezer_;
  SharedRegion control_, report_;
  StopToken stop_;
};

}  // namespace assay
