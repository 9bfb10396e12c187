#include "judge_double.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstring>

#include "base/check.h"
#include "base/clock.h"
#include "wire/channel.h"
#include "wire/doorbell.h"

namespace assay::native {
namespace {

constexpr int kTimeoutMs = 60'000;
constexpr uint64_t kGuardBytes = 256;
constexpr uint64_t kDeviceGranularity = uint64_t{2} << 20;  // the fake driver's, as an H200's

enum { kInputs, kOutputs, kWeights };

// A copy of the descriptor far above the numbers that the host's end takes.
UniqueFd HighCopy(int fd) {
  UniqueFd copy(fcntl(fd, F_DUPFD_CLOEXEC, 64));
  ASSAY_CHECK(copy);
  return copy;
}

}  // namespace

wire::ArgumentSpec Tensor(std::string_view name, wire::Role role, wire::DType dtype,
                          std::vector<int64_t> shape) {
  wire::ArgumentSpec spec{};
  name.copy(spec.name, wire::kNameBytes - 1);
  spec.role = role;
  spec.kind = wire::Kind::kTensor;
  spec.dtype = dtype;
  spec.rank = static_cast<uint32_t>(shape.size());
  spec.size_bytes = wire::ElementBytes(dtype);
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    spec.shape[axis] = shape[axis];
    spec.size_bytes *= static_cast<uint64_t>(shape[axis]);
  }
  return spec;
}

wire::ArgumentSpec Scalar(std::string_view name, wire::Kind kind) {
  wire::ArgumentSpec spec{};
  name.copy(spec.name, wire::kNameBytes - 1);
  spec.role = wire::Role::kInput;
  spec.kind = kind;
  spec.size_bytes = 8;
  return spec;
}

std::vector<wire::ArgumentSpec> XToY(int64_t rows, int64_t columns) {
  return {Tensor("x", wire::Role::kInput, wire::DType::kFloat32, {rows, columns}),
          Tensor("y", wire::Role::kOutput, wire::DType::kFloat32, {rows, columns})};
}

const char* const kDoubleKernel = R"(#include <assay/kernel.h>
ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> y) {
  for (int64_t row = 0; row < x.size(0); ++row)
    for (int64_t column = 0; column < x.size(1); ++column) y(row, column) = 2 * x(row, column);
}
)";

std::string WithBody(std::string_view body, std::string_view before) {
  return fmt::format(
      "#include <assay/kernel.h>\n{}\n"
      "ASSAY_KERNEL([[maybe_unused]] assay::Tensor<const float, 2> x,\n"
      "             [[maybe_unused]] assay::Tensor<float, 2> y) {{\n{}\n}}\n",
      before, body);
}

SharedMemory::SharedMemory(uint64_t bytes)
    : fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING)),
      size_bytes((bytes + 4095) / 4096 * 4096) {
  ASSAY_CHECK(fd && ftruncate(fd.get(), static_cast<off_t>(size_bytes)) == 0);
  void* mapped = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  ASSAY_CHECK(mapped != MAP_FAILED);
  data = static_cast<std::byte*>(mapped);
}

SharedMemory::~SharedMemory() { munmap(data, size_bytes); }

CompiledCandidate::CompiledCandidate(std::string_view source, std::string_view language,
                                     std::string_view flags)
    : folder_([] {
        auto folder = TemporaryFolder::Create();
        ASSAY_CHECK(folder);
        return std::move(*folder);
      }()) {
  const std::string file = (folder_.path() / fmt::format("kernel.{}", language)).string();
  EXPECT_TRUE(WriteFileAtomically(file, source));
  const std::string command =
      fmt::format("{} -O2 -fPIC -shared -fvisibility=hidden -Wall -Wextra -I{}/include {} {} -o {}",
                  language == "c" ? "gcc -std=c11" : "g++ -std=c++20", ASSAY_SOURCE_DIRECTORY,
                  flags, file, path());
  FILE* compiler = popen(command.c_str(), "r");
  EXPECT_TRUE(compiler != nullptr && pclose(compiler) == 0) << command;
}

JudgeDouble::JudgeDouble(const std::vector<wire::ArgumentSpec>& arguments, uint32_t slot_count,
                         Where where)
    : where_(where),
      control_(sizeof(wire::Control)),
      report_(sizeof(wire::Report)),
      plan_(sizeof(wire::Plan)) {
  uint64_t ends[3] = {kGuardBytes, kGuardBytes, kGuardBytes};
  plan().argument_count = static_cast<uint32_t>(arguments.size());
  plan().slot_count = slot_count;
  for (size_t i = 0; i < arguments.size(); ++i) {
    wire::ArgumentSpec& argument = plan().arguments[i];
    argument = arguments[i];
    uint64_t& end = ends[argument.role == wire::Role::kInput    ? kInputs
                         : argument.role == wire::Role::kOutput ? kOutputs
                                                                : kWeights];
    argument.offset = end;
    end = (end + argument.size_bytes + kGuardBytes + 63) / 64 * 64;
  }
  plan().input_stride = ends[kInputs];
  plan().output_stride = ends[kOutputs];
  plan().weights_stride = ends[kWeights];
  for (const uint64_t bytes :
       {ends[kInputs] * slot_count, ends[kOutputs] * slot_count, ends[kWeights] * slot_count})
    data_.push_back(std::make_unique<SharedMemory>(
        where == Where::kHost
            ? bytes
            : (bytes + kDeviceGranularity - 1) / kDeviceGranularity * kDeviceGranularity));
  control().spin = 0;
}

JudgeDouble::~JudgeDouble() {
  if (!ended_) {
    kill(pid_, SIGKILL);
    waitpid(pid_, &status_, 0);
  }
}

void JudgeDouble::Start(const std::string& candidate_path, std::string_view lockdown) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
  socket_ = UniqueFd(pair[0]);
  const UniqueFd theirs = HighCopy(pair[1]);
  close(pair[1]);
  UniqueFd program(memfd_create("lockdown", MFD_CLOEXEC));
  ASSERT_EQ(pwrite(program.get(), lockdown.data(), lockdown.size(), 0),
            static_cast<ssize_t>(lockdown.size()));
  const UniqueFd program_copy = HighCopy(program.get());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), 3);
  posix_spawn_file_actions_adddup2(&actions, program_copy.get(), 4);
  std::string host = ASSAY_BUILD_DIRECTORY "/lib/assay/native_host";
  std::string candidate = candidate_path;
  char* arguments[] = {host.data(), candidate.data(), nullptr};
  char threads[] = "OMP_NUM_THREADS=2";
  char libraries[] = "LD_LIBRARY_PATH=" ASSAY_BUILD_DIRECTORY "/tests/fake_cuda";
  std::vector<char*> environment{threads};
  if (where_ == Where::kFakeDevice) environment.push_back(libraries);
  if (!variable_.empty()) environment.push_back(variable_.data());
  environment.push_back(nullptr);
  ASSERT_EQ(posix_spawn(&pid_, host.c_str(), &actions, nullptr, arguments, environment.data()), 0)
      << host;
  posix_spawn_file_actions_destroy(&actions);
  ended_ = false;
}

wire::Frame JudgeDouble::Request(wire::FrameKind kind, std::vector<uint64_t> args, int fd) {
  wire::Frame frame{wire::kMagic, kind, {}};
  std::copy(args.begin(), args.end(), frame.args);
  wire::Frame reply{};
  if (!wire::SendFrame(socket_.get(), frame, fd)) return reply;
  if (wire::ReceiveFrame(socket_.get(), &reply, kTimeoutMs) != wire::Receive::kFrame)
    return wire::Frame{};
  return reply;
}

wire::Frame JudgeDouble::Attach(wire::Region region, const SharedMemory& memory, bool writable,
                                Where where) {
  return Request(wire::FrameKind::kAttach,
                 {static_cast<uint64_t>(region), memory.size_bytes, writable ? 1u : 0u,
                  where == Where::kFakeDevice ? 1u : 0u},
                 memory.fd.get());
}

void JudgeDouble::AttachAll() {
  wire::Frame hello;
  ASSERT_EQ(wire::ReceiveFrame(socket_.get(), &hello, kTimeoutMs), wire::Receive::kFrame);
  EXPECT_EQ(hello.kind, wire::FrameKind::kHello);
  EXPECT_EQ(hello.args[0], wire::kVersion);
  const struct {
    wire::Region region;
    const SharedMemory& memory;
    bool writable;
    Where where;
  } regions[] = {{wire::Region::kControl, control_, false, Where::kHost},
                 {wire::Region::kReport, report_, true, Where::kHost},
                 {wire::Region::kPlan, plan_, false, Where::kHost},
                 {wire::Region::kInputs, *data_[kInputs], false, where_},
                 {wire::Region::kWeights, *data_[kWeights], false, where_},
                 {wire::Region::kOutputs, *data_[kOutputs], true, where_}};
  for (const auto& [region, memory, writable, where] : regions)
    ASSERT_EQ(Attach(region, memory, writable, where).kind, wire::FrameKind::kDone) << message();
  // Device memory of the fake's can be read by the host as well: numbers lie where they are.
  if (where_ == Where::kFakeDevice) {
    ASSERT_EQ(Attach(wire::Region::kNumbers, *data_[kInputs], false).kind, wire::FrameKind::kDone);
  }
}

void JudgeDouble::StartLoaded(const std::string& candidate_path, std::string_view lockdown) {
  ASSERT_NO_FATAL_FAILURE(Start(candidate_path, lockdown));
  ASSERT_NO_FATAL_FAILURE(AttachAll());
  ASSERT_EQ(Load().kind, wire::FrameKind::kDone) << message();
}

void JudgeDouble::EnterBlocks() {
  control().call_count = 0;
  ASSERT_TRUE(
      wire::SendFrame(socket_.get(), wire::Frame{wire::kMagic, wire::FrameKind::kBlocks, {}}));
}

bool JudgeDouble::RunBlock(const std::vector<uint32_t>& order, bool replay,
                           const std::function<void()>& before_go) {
  control().replay = replay ? 1 : 0;
  if (replay) std::copy(order.begin(), order.end(), control().order);
  __atomic_store_n(&control().call_count, replay ? static_cast<uint32_t>(order.size()) : 0,
                   __ATOMIC_RELEASE);
  wire::Ring(control().armed, ++sequence_, true);
  if (!Await(report().ready, sequence_)) return false;
  if (before_go) before_go();
  std::copy(order.begin(), order.end(), control().order);
  control().call_count = static_cast<uint32_t>(order.size());
  wire::Ring(control().go, sequence_, true);
  return Await(report().done, sequence_);
}

wire::Frame JudgeDouble::LeaveBlocks() {
  __atomic_store_n(&control().call_count, wire::kLeaveBlocks, __ATOMIC_RELEASE);
  wire::Ring(control().armed, ++sequence_, true);
  wire::Frame reply{};
  if (wire::ReceiveFrame(socket_.get(), &reply, kTimeoutMs) != wire::Receive::kFrame)
    return wire::Frame{};
  return reply;
}

void JudgeDouble::Quit() {
  EXPECT_TRUE(
      wire::SendFrame(socket_.get(), wire::Frame{wire::kMagic, wire::FrameKind::kQuit, {}}));
}

bool JudgeDouble::HostIsGone() {
  if (!ended_ && waitpid(pid_, &status_, WNOHANG) == pid_) ended_ = true;
  return ended_;
}

bool JudgeDouble::Await(const uint32_t& word, uint32_t value) {
  const Deadline deadline = Deadline::AfterSeconds(kTimeoutMs / 1000);
  while (true) {
    const uint32_t current = wire::LoadAcquire(word);
    if (current == value) return true;
    if (HostIsGone()) return wire::LoadAcquire(word) == value;
    if (deadline.Expired()) {
      ADD_FAILURE() << "the host is stuck";
      return false;
    }
    wire::FutexWait(word, current, 10'000'000);
  }
}

int JudgeDouble::Wait() {
  const Deadline deadline = Deadline::AfterSeconds(kTimeoutMs / 1000);
  // The socket closes when the host ends: wait for that, not for time to pass.
  wire::Frame frame;
  while (!HostIsGone() && !deadline.Expired())
    if (wire::ReceiveFrame(socket_.get(), &frame, deadline.RemainingMs()) ==
            wire::Receive::kClosed &&
        !ended_) {
      waitpid(pid_, &status_, 0);
      ended_ = true;
    }
  EXPECT_TRUE(ended_) << "the host does not end";
  return status_;
}

std::byte* JudgeDouble::Address(std::string_view name, uint32_t slot) {
  for (uint32_t i = 0; i < plan().argument_count; ++i) {
    const wire::ArgumentSpec& argument = plan().arguments[i];
    if (name != argument.name) continue;
    switch (argument.role) {
      case wire::Role::kInput:
        return data_[kInputs]->data + slot * plan().input_stride + argument.offset;
      case wire::Role::kOutput:
        return data_[kOutputs]->data + slot * plan().output_stride + argument.offset;
      case wire::Role::kParameter:
        return data_[kWeights]->data + slot * plan().weights_stride + argument.offset;
    }
  }
  ASSAY_CHECK(false && "no such argument");
  return nullptr;
}

}  // namespace assay::native
