#include "hosts/host.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

#include "base/check.h"
#include "base/clock.h"
#include "base/defences.h"
#include "base/files.h"
#include "base/trace.h"
#include "machine/machine.h"
#include "wire/channel.h"
#include "wire/doorbell.h"

namespace assay {

using wire::Frame;
using wire::FrameKind;
using Kind = HostTrouble::Kind;

namespace {

// An honest host answers its wake-up within this time nearly always, and computes no longer than
// that before it answers; what it takes more is added to its block.
constexpr int64_t kReadyAllowanceNs = 150'000;
constexpr int64_t kReadyCpuAllowanceNs = 30'000;
// The same on a device. What a candidate takes longer than its opponent is charged besides
// (rules/head_start.h).
constexpr int64_t kDeviceReadyAllowanceNs = 1'000'000;
constexpr int kVoidBlocksMax = 3;
// About this long between two looks at where a watched host is.
constexpr int64_t kWatchNs = 150'000;

int64_t LookAliveIntervalNs() { return 20'000'000; }

// For traces.
std::string_view RequestName(FrameKind kind) {
  switch (kind) {
    case FrameKind::kAttach:
      return "request: attach";
    case FrameKind::kLoad:
      return "request: load";
    case FrameKind::kStoreWeights:
      return "request: store weights";
    case FrameKind::kDraw:
      return "request: draw";
    case FrameKind::kEvaluate:
      return "request: evaluate";
    case FrameKind::kEstimate:
      return "request: estimate";
    case FrameKind::kFill:
      return "request: fill";
    default:
      return "request";
  }
}

}  // namespace

std::unexpected<HostTrouble> HostFailed(Kind kind, std::string message) {
  HostTrouble trouble;
  trouble.kind = kind;
  trouble.message = std::move(message);
  return std::unexpected(std::move(trouble));
}

std::unexpected<HostTrouble> TroubleFrom(const Error& error) {
  return HostFailed(error.kind == ErrorKind::kInterrupted ? Kind::kInterrupted : Kind::kEnvironment,
                    error.message);
}

HostResult<Host> Host::Start(HostOptions options) {
  auto host = Spawn(std::move(options));
  if (!host) return host;
  if (auto greeted = host->Greet(); !greeted) return std::unexpected(greeted.error());
  return host;
}

HostResult<Host> Host::Spawn(HostOptions options) {
  const auto environment = [](std::string message) {
    return HostFailed(Kind::kEnvironment, std::move(message));
  };
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
    return environment(fmt::format("cannot create a socket: {}", strerror(errno)));
  Host host;
  host.socket_ = UniqueFd(pair[0]);
  UniqueFd theirs(pair[1]);
  const int on = 1;
  ::setsockopt(host.socket_.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  UniqueFd lockdown = MemoryFile(options.lockdown);
  if (!lockdown) return environment("cannot create shared memory for the lockdown program");
  options.sandbox.descriptors.emplace_back(theirs.get(), 3);
  options.sandbox.descriptors.emplace_back(lockdown.get(), 4);
  std::vector<UniqueFd> kept;
  if (options.nursery) ForkFromNursery(*options.nursery, &options.sandbox, &kept);
  auto sandbox = Sandbox::Begin(options.sandbox, options.artifact_path);
  if (!sandbox) return environment(sandbox.error().message);
  host.sandbox_.emplace(std::move(*sandbox));
  host.spin_ = options.spin;
  host.cores_ = options.sandbox.cpus.size();
  host.start_timeout_s_ = options.start_timeout_s;
  host.attach_timeout_s_ = options.attach_timeout_s;
  host.end_timeout_s_ = options.end_timeout_s;
  host.spawned_ns_ = MonotonicNs();
  host.wake_allowance_ns_ = options.wake_allowance_ns;
  host.on_device_ = options.on_device;
  host.stays_awake_ = options.stays_awake;
  return host;
}

HostResult<void> Host::AwaitHello() {
  const Deadline deadline = Deadline::AfterSeconds(start_timeout_s_);
  Frame hello;
  auto received = wire::Receive::kTimeout;
  while (received == wire::Receive::kTimeout) {
    if (Interrupted()) return HostFailed(Kind::kInterrupted, "interrupted");
    if (deadline.Expired()) return std::unexpected(TimedOut("starting", start_timeout_s_));
    const int wait_ms = std::min(deadline.RemainingMs(), 100);
    received = wire::ReceiveFrame(socket_.get(), &hello, wait_ms, nullptr, &pid_);
  }
  if (received != wire::Receive::kFrame || hello.kind != FrameKind::kHello ||
      hello.args[0] != wire::kVersion || pid_ <= 0)
    return std::unexpected(Death("while it started"));
  return {};
}

HostResult<void> Host::Greet() {
  const Span span("greet a host");
  if (auto started = sandbox_->AwaitStarted(); !started)
    return HostFailed(Kind::kEnvironment, started.error().message);
  if (auto greeted = AwaitHello(); !greeted) return greeted;
  freezer_.emplace(pid_, !stays_awake_);
  AddSpan("host starts", spawned_ns_, MonotonicNs(), pid_);
  auto control = SharedRegion::Create("assay-control", sizeof(wire::Control));
  if (!control) return HostFailed(Kind::kEnvironment, control.error().message);
  auto report = SharedRegion::Create("assay-report", sizeof(wire::Report));
  if (!report) return HostFailed(Kind::kEnvironment, report.error().message);
  control_ = std::move(*control);
  report_ = std::move(*report);
  control_.as<wire::Control>()->spin = spin_ ? 1 : 0;
  if (auto sealed = control_.SealAgainstNewWriters(); !sealed)
    return HostFailed(Kind::kEnvironment, sealed.error().message);
  if (auto sealed = report_.SealSize(); !sealed)
    return HostFailed(Kind::kEnvironment, sealed.error().message);
  if (auto done = Attach(wire::Region::kControl, control_, false); !done) return done;
  return Attach(wire::Region::kReport, report_, true);
}

namespace {

// For a trace: what of a device takes long to map.
std::string_view MappingName(wire::Region region) {
  switch (region) {
    case wire::Region::kInputs:
      return "map inputs";
    case wire::Region::kOutputs:
      return "map outputs";
    case wire::Region::kWeights:
      return "map weights";
    default:
      return "map another region";
  }
}

}  // namespace

HostResult<void> Host::Attach(wire::Region region, const SharedRegion& memory, bool writable) {
  const uint64_t args[] = {static_cast<uint64_t>(region), memory.size_bytes(), writable ? 1u : 0u};
  auto done = Request(FrameKind::kAttach, args, attach_timeout_s_, memory.fd());
  if (!done) return std::unexpected(done.error());
  return {};
}

HostResult<uint64_t> Host::AttachDevice(wire::Region region, int fd, uint64_t size_bytes) {
  const Span span(MappingName(region));
  const uint64_t args[] = {static_cast<uint64_t>(region), size_bytes, 1, 1};
  auto done = Request(FrameKind::kAttach, args, attach_timeout_s_, fd);
  if (!done) return std::unexpected(done.error());
  return done->args[0];
}

HostResult<Frame> Host::Request(FrameKind kind, std::span<const uint64_t> args, double timeout_s,
                                int fd) {
  const Span span(RequestName(kind));
  if (auto posted = Post(kind, args, fd); !posted) return std::unexpected(posted.error());
  return Collect(timeout_s);
}

HostResult<void> Host::Sleep() {
  ASSAY_CHECK(!in_blocks_ && freezer_);
  if (!freezer_->Freeze()) return std::unexpected(Death("before the first block"));
  return {};
}

HostResult<void> Host::Post(FrameKind kind, std::span<const uint64_t> args, int fd) {
  ASSAY_CHECK(!in_blocks_ && args.size() <= 8);
  if (Interrupted()) return HostFailed(Kind::kInterrupted, "interrupted");
  if (freezer_ && freezer_->frozen()) freezer_->Thaw();
  if (kind == FrameKind::kLoad) ++loads_;
  Frame request{wire::kMagic, kind, {}};
  std::copy(args.begin(), args.end(), request.args);
  if (!wire::SendFrame(socket_.get(), request, fd))
    return std::unexpected(Death("before a request"));
  return {};
}

HostResult<Frame> Host::Collect(double timeout_s) {
  const Deadline deadline = Deadline::AfterSeconds(timeout_s);
  Frame reply;
  while (true) {
    const int wait_ms = std::min(deadline.RemainingMs(), 100);
    const auto received = wire::ReceiveFrame(socket_.get(), &reply, wait_ms);
    if (received == wire::Receive::kFrame) break;
    if (received == wire::Receive::kClosed) return std::unexpected(Death("during a request"));
    if (received == wire::Receive::kMalformed) return std::unexpected(Forgery());
    if (Interrupted()) return HostFailed(Kind::kInterrupted, "interrupted");
    if (deadline.Expired()) return std::unexpected(TimedOut("answering a request", timeout_s));
  }
  if (reply.kind == FrameKind::kDone) return reply;
  HostTrouble trouble;
  trouble.kind = Kind::kFailed;
  trouble.failure = static_cast<wire::Failure>(reply.args[0]);
  trouble.message = Message();
  trouble.output = Output();
  return std::unexpected(std::move(trouble));
}

HostResult<void> Host::Bind(const std::vector<int>& cpus) {
  // A core that something outside slows down then slows down both sides of a pair.
  cores_ = cpus.size();
  if (BindProcess(pid_, cpus) && (!on_device_ || BindFirstThread(pid_, cpus.front()))) return {};
  const int error = errno;
  pollfd ended{sandbox_->pidfd(), POLLIN, 0};
  if (::poll(&ended, 1, 0) > 0) return std::unexpected(Death("between two blocks"));
  return HostFailed(Kind::kEnvironment,
                    fmt::format("cannot bind a host to its cores: {}", strerror(error)));
}

HostResult<void> Host::EnterBlocks(double timeout_s) {
  const Span span("enter blocks");
  ASSAY_CHECK(!in_blocks_);
  auto* control = control_.as<wire::Control>();
  control->call_count = control->replay = 0;
  if (freezer_->frozen()) freezer_->Thaw();
  if (!wire::SendFrame(socket_.get(), Frame{wire::kMagic, FrameKind::kBlocks, {}}))
    return std::unexpected(Death("before the blocks"));
  in_blocks_ = true;
  // The first block has no calls: its answer shows that the loop is entered.
  auto ran = [&]() -> HostResult<void> {
    const uint32_t sequence = ++sequence_;
    wire::Ring(control->armed, sequence, true);
    const Deadline deadline = Deadline::AfterSeconds(timeout_s);
    if (auto ready = AwaitWord(report().ready, sequence, deadline, false, "preparing its slots");
        !ready)
      return ready;
    wire::Ring(control->go, sequence, true);
    return AwaitWord(report().done, sequence, deadline, false, "preparing its slots");
  }();
  if (!ran) return ran;
  if (!freezer_->Freeze()) return std::unexpected(Death("before the first block"));
  return {};
}

HostResult<void> Host::LeaveBlocks(double timeout_s) {
  ASSAY_CHECK(in_blocks_);
  auto* control = control_.as<wire::Control>();
  __atomic_store_n(&control->call_count, wire::kLeaveBlocks, __ATOMIC_RELEASE);
  wire::Ring(control->armed, ++sequence_, true);
  freezer_->Thaw();
  in_blocks_ = false;
  Frame reply;
  const auto received =
      wire::ReceiveFrame(socket_.get(), &reply, static_cast<int>(timeout_s * 1000));
  if (received == wire::Receive::kTimeout) return std::unexpected(TimedOut("leaving", timeout_s));
  if (received != wire::Receive::kFrame || reply.kind != FrameKind::kDone)
    return std::unexpected(Death("while it left the blocks"));
  return {};
}

namespace {

// Its inputs lay there when it woke: what it could have worked before it answered. A clock that is
// read while a thread runs may be late, so what was worked in all counts, too, where it is known.
int64_t ChargedHeadStartNs(const BlockResult& result, int64_t wake_allowance_ns, bool on_device) {
  if (on_device) return std::max<int64_t>(0, result.ready_ns - kDeviceReadyAllowanceNs);
  const int64_t worked_ns = std::min(result.ready_ns, result.ready_cpu_ns) - kReadyCpuAllowanceNs;
  const int64_t counted_ns =
      wake_allowance_ns == 0 ? 0 : result.worked_before_ns - wake_allowance_ns;
  return std::max({int64_t{0}, result.ready_ns - kReadyAllowanceNs, worked_ns, counted_ns});
}

}  // namespace

HostResult<BlockResult> Host::Wake(std::span<const uint32_t> order_ahead, Deadline deadline) {
  const Span span("wake");
  auto* control = control_.as<wire::Control>();
  ++sequence_;
  SetOrder(order_ahead);
  wire::Ring(control->armed, sequence_, true);
  const int64_t woken_ns = MonotonicNs();
  freezer_->Thaw();
  if (auto ready = AwaitWord(report().ready, sequence_, deadline, spin_, "getting ready"); !ready)
    return std::unexpected(ready.error());
  BlockResult result;
  result.ready_ns = MonotonicNs() - woken_ns;
  result.ready_cpu_ns = freezer_->CpuSinceFreezeNs();
  return result;
}

void Host::SetOrder(std::span<const uint32_t> order) {
  auto* control = control_.as<wire::Control>();
  std::copy(order.begin(), order.end(), control->order);
  __atomic_store_n(&control->call_count, static_cast<uint32_t>(order.size()), __ATOMIC_RELEASE);
}

std::optional<uint32_t> Host::SlotOfCall(uint32_t call) const {
  const auto* control = control_.as<wire::Control>();
  if (call >= std::min(control->call_count, wire::kCallsMax)) return std::nullopt;
  return control->order[call];
}

HostResult<void> Host::WatchBlock(std::span<const uint32_t> order, double timeout_s,
                                  LibraryClock* clock) {
  ASSAY_CHECK(in_blocks_ && freezer_->frozen() && order.size() <= wire::kCallsMax);
  const Deadline deadline = Deadline::AfterSeconds(timeout_s);
  if (auto woken = Wake({}, deadline); !woken) return std::unexpected(woken.error());
  SetOrder(order);
  wire::Ring(control_.as<wire::Control>()->go, sequence_, !spin_);
  std::mt19937 random(std::random_device{}());
  while (wire::LoadAcquire(report().done) != sequence_) {
    // At moments that follow no rhythm.
    const int64_t until_ns =
        MonotonicNs() + kWatchNs / 2 + static_cast<int64_t>(random() % kWatchNs);
    while (MonotonicNs() < until_ns && wire::LoadAcquire(report().done) != sequence_) wire::Pause();
    if (wire::LoadAcquire(report().done) == sequence_) break;
    if (!freezer_->Freeze()) return std::unexpected(Death("while it was watched"));
    clock->Sample(pid_);
    freezer_->Thaw();
    if (deadline.Expired()) return std::unexpected(TimedOut("running", timeout_s));
  }
  if (!freezer_->Freeze()) return std::unexpected(Death("after it was watched"));
  return {};
}

HostResult<BlockResult> Host::RunBlock(const OutputWatch& watch, std::span<const uint32_t> order,
                                       double timeout_s) {
  ASSAY_CHECK(in_blocks_ && freezer_->frozen() && order.size() <= wire::kCallsMax);
  if (Interrupted()) return HostFailed(Kind::kInterrupted, "interrupted");
  if (!freezer_->SleptSinceFreeze()) {
    if (++void_blocks_ < kVoidBlocksMax)
      return HostFailed(Kind::kVoid, "its slots must be filled anew");
    sandbox_->Kill();
    HostTrouble trouble{Kind::kFoul,
                        {},
                        "it used CPU time while it was stopped and its slots were being filled",
                        "ran-while-asleep",
                        Output()};
    return std::unexpected(trouble);
  }
  void_blocks_ = 0;
  const int64_t cpu_before_ns = freezer_->cpu_ns();
  const Deadline deadline = Deadline::AfterSeconds(timeout_s);
  const bool replays = control_.as<wire::Control>()->replay != 0;
  ThreadWaits waits_before = ReadThreadWaits(pid_);
  int64_t own_wait_before_ns = OwnWaitNs();
  auto woken = Wake(replays ? order : std::span<const uint32_t>(), deadline);
  if (!woken) return woken;
  BlockResult result = *woken;
  if (replays) {
    // What capturing waits for is in nobody's time; and only this thread's waits are told.
    waits_before = {{pid_, MainThreadWaitNs(pid_)}};
    own_wait_before_ns = OwnWaitNs();
  }
  SetOrder(order);

  const int64_t start_ns = MonotonicNs();
  wire::Ring(control_.as<wire::Control>()->go, sequence_, !spin_);
  if (auto done = AwaitWord(report().done, sequence_, deadline, spin_, "running its calls");
      !done) {
    HostTrouble trouble = std::move(done).error();
    if (trouble.kind == Kind::kTimedOut) trouble.message += " (--timeout)";
    return std::unexpected(std::move(trouble));
  }
  const int64_t block_ns = MonotonicNs() - start_ns;
  const int64_t own_wait_ns = OwnWaitNs() - own_wait_before_ns;
  result.time_ns = block_ns;
  const int64_t look_begin_ns = MonotonicNs();
  watch.take();
  result.look_ns = on_device_ ? MonotonicNs() - look_begin_ns : 0;
  if (!freezer_->Freeze()) return std::unexpected(Death("after a block"));
  AddSpan("calls", start_ns, start_ns + block_ns);  // what it writes may take its time by now
  result.worked_before_ns = freezer_->cpu_ns() - cpu_before_ns - block_ns;
  const int64_t charged_ns = Stands(Defence::kHeadStart) && !replays
                                 ? ChargedHeadStartNs(result, wake_allowance_ns_, on_device_)
                                 : 0;
  result.time_ns += charged_ns;
  result.uncharged_ns = replays ? 0 : std::max<int64_t>(0, result.ready_ns - charged_ns);
  ThreadWaits waits = ReadThreadWaits(pid_);
  if (on_device_) std::erase_if(waits, [this](const auto& wait) { return wait.first != pid_; });
  result.waited_ns = LongestWaitNs(waits_before, waits);
  if (cores_ > 0 && !on_device_)
    result.waited_ns = WaitForOthersNs(result.waited_ns,
                                       static_cast<int64_t>(cores_) * (result.ready_ns + block_ns),
                                       freezer_->cpu_ns() - cpu_before_ns);
  result.waited_ns = std::max(own_wait_ns, result.waited_ns);
  result.settle_ns = static_cast<int64_t>(report().settle_ns);
  if (!watch.still_holds() && Stands(Defence::kLateWrites)) {
    sandbox_->Kill();
    HostTrouble trouble{Kind::kFoul,
                        {},
                        "outputs still changed after the call had returned",
                        "late-write",
                        Output()};
    return std::unexpected(trouble);
  }
  return result;
}

HostResult<void> Host::AwaitWord(const uint32_t& word, uint32_t value, Deadline deadline, bool spin,
                                 std::string_view doing) {
  const int64_t begin_ns = MonotonicNs();
  int64_t next_look_ns = begin_ns + LookAliveIntervalNs();
  // The option that follows in brackets sets the limit: it is no part of how the process died.
  const std::string_view without_option = doing.substr(0, doing.find(" (--"));
  while (true) {
    if (spin) {
      for (int look = 0; look < 2000; ++look) {
        if (wire::LoadAcquire(word) == value) return {};
        wire::Pause();
      }
    } else {
      const uint32_t current = wire::LoadAcquire(word);
      if (current == value) return {};
      wire::FutexWait(word, current, LookAliveIntervalNs());
      if (wire::LoadAcquire(word) == value) return {};
    }
    const int64_t now_ns = MonotonicNs();
    if (now_ns < next_look_ns) continue;
    next_look_ns = now_ns + LookAliveIntervalNs();
    pollfd ended{sandbox_->pidfd(), POLLIN, 0};
    if (::poll(&ended, 1, 0) > 0) {
      if (wire::LoadAcquire(word) == value) return {};
      return std::unexpected(Death(fmt::format("while {}", without_option)));
    }
    if (auto stays = LookForFrames(without_option); !stays) return stays;
    if (Interrupted()) return HostFailed(Kind::kInterrupted, "interrupted");
    if (deadline.Expired())
      return std::unexpected(TimedOut(doing, static_cast<double>(now_ns - begin_ns) / 1e9));
  }
}

}  // namespace assay
