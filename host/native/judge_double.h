// Plays the judge in tests of the native host, without sandbox, clock or checks: shares memory with
// a host that runs as a plain child. Every wait is bounded; a host that hangs is killed.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/unique_fd.h"
#include "wire/types.h"

namespace assay::native {

// Arguments of a problem; JudgeDouble fills in offsets and strides.
wire::ArgumentSpec Tensor(std::string_view name, wire::Role role, wire::DType dtype,
                          std::vector<int64_t> shape);
wire::ArgumentSpec Scalar(std::string_view name, wire::Kind kind);

// One float32 input x[rows, columns] and one output y of the same shape; a kernel that doubles x;
// and a kernel over x and y with any body, after any declarations.
std::vector<wire::ArgumentSpec> XToY(int64_t rows = 3, int64_t columns = 5);
extern const char* const kDoubleKernel;
std::string WithBody(std::string_view body, std::string_view before = "");

// A memfd mapped here. The fake CUDA driver also accepts it as device memory.
struct SharedMemory {
  UniqueFd fd;
  std::byte* data = nullptr;
  uint64_t size_bytes = 0;

  explicit SharedMemory(uint64_t size_bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
};

// Compiles a candidate into a folder of its own; a failure fails the test.
class CompiledCandidate {
 public:
  // language: "cpp" or "c"; flags come after the defaults.
  CompiledCandidate(std::string_view source, std::string_view language = "cpp",
                    std::string_view flags = "");
  std::string path() const { return (folder_.path() / "kernel.so").string(); }

 private:
  TemporaryFolder folder_;
};

enum class Where { kHost, kFakeDevice };

class JudgeDouble {
 public:
  JudgeDouble(const std::vector<wire::ArgumentSpec>& arguments, uint32_t slot_count,
              Where where = Where::kHost);
  ~JudgeDouble();

  // Starts the host; `lockdown` is the content of descriptor 4. Expects its hello.
  void Start(const std::string& candidate_path, std::string_view lockdown = {});
  // Attaches every region as the judge does: outputs and report writable, all others read-only.
  void AttachAll();
  wire::Frame Attach(wire::Region region, const SharedMemory& memory, bool writable,
                     Where where = Where::kHost);
  // Sends a request. Returns the answer, or a frame of kind 0 if the host is gone.
  wire::Frame Request(wire::FrameKind kind, std::vector<uint64_t> args = {}, int fd = -1);
  wire::Frame Load() { return Request(wire::FrameKind::kLoad); }
  // Start, AttachAll, Load, and expects kDone.
  void StartLoaded(const std::string& candidate_path, std::string_view lockdown = {});

  // Adds "NAME=value" to the host's environment. Call before it starts.
  void SetVariable(std::string variable) { variable_ = std::move(variable); }
  void EnterBlocks();
  // Runs one block. Returns false if the host dies in it. `replay`: tells the host the order before
  // it is armed, and asks it to run the block as a graph. `before_go` runs once the host is ready.
  bool RunBlock(const std::vector<uint32_t>& order, bool replay = false,
                const std::function<void()>& before_go = nullptr);
  wire::Frame LeaveBlocks();

  void Quit();
  // Waits for the host's end. Returns waitpid's status.
  int Wait();
  int socket() const { return socket_.get(); }
  std::string message() const { return report().message; }
  const wire::Report& report() const {
    return *reinterpret_cast<const wire::Report*>(report_.data);
  }
  wire::Plan& plan() { return *reinterpret_cast<wire::Plan*>(plan_.data); }
  wire::Control& control() { return *reinterpret_cast<wire::Control*>(control_.data); }

  // The argument's bytes in a slot (parameters: slot 0).
  template <typename T>
  T* At(std::string_view name, uint32_t slot = 0) {
    return reinterpret_cast<T*>(Address(name, slot));
  }

 private:
  std::byte* Address(std::string_view name, uint32_t slot);
  bool Await(const uint32_t& word, uint32_t value);
  bool HostIsGone();

  Where where_;
  std::string variable_;
  SharedMemory control_, report_, plan_;
  std::vector<std::unique_ptr<SharedMemory>> data_;  // inputs, outputs, weights
  UniqueFd socket_;
  pid_t pid_ = 0;
  int status_ = 0;
  bool ended_ = true;
  uint32_t sequence_ = 0;
};

}  // namespace assay::native
