// A candidate on its way to the gates: built in the builder's sandbox, then started in fresh hosts.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "build/build.h"
#include "build/sass.h"
#include "model/verdict.h"
#include "pipeline/host.h"
#include "pipeline/live_slots.h"
#include "pipeline/oracle.h"
#include "pipeline/python_runtime.h"

namespace assay {

struct HostTool;  // host_tool.h

struct CandidateLimits {
  uint64_t memory_bytes = uint64_t{4} << 30;
  double build_timeout_s = 60;  // native; a python build (load_inline) gets five times that
  double call_timeout_s = 10;
};

// A built candidate, or why there is none.
struct BuiltCandidate {
  CandidateSource source;
  std::string artifact;  // shared library, tar of extensions, or device image
  std::string launches;  // wire::Launches, of a device candidate
  std::string toolkit;   // CUDA's folder, where its hosts look into it
  std::string flags;
  std::string compiler;
  std::map<std::string, InstructionMix> instructions;  // by kernel, for a GPU, with nvdisasm
  double build_s = 0;
  bool cached = false;
  std::optional<std::string> failure;  // set: it did not build, and this is the message
  bool timed_out = false;
  std::string log;
  // In the device form, whose launches are planned for one size: the same for the other size.
  std::shared_ptr<const BuiltCandidate> at_other_size;
};

// The text of assay/kernel.h, as candidates include it.
Result<std::string> KernelHeader();

// The device that a candidate is built for, and the sizes that it will be called at.
struct DeviceTarget {
  const Gpu& gpu;
  const wire::Plan& plan;
  bool libraries_allowed = true;
  struct Size {
    const wire::Plan& plan;
    const std::string& init_arguments;
    const std::string& settings;
  };
  std::optional<Size> other_size;
};

// Compiles (or, for a python candidate, imports once) in a sandbox; not for the device form.
// `target`: null on the CPU. Errors (kEnvironment): no compiler, no sandbox; kInterrupted.
Result<BuiltCandidate> BuildCandidate(const CandidateSource& source, const CandidateLimits& limits,
                                      const PythonRuntime& python,
                                      const std::string& init_arguments,
                                      const std::string& settings, InterruptFlag interrupt,
                                      const DeviceTarget* target = nullptr);

// Whether nothing but its source is needed to build it: neither a device nor the problem.
bool BuildsAlone(const CandidateSource& source);

// A host with its own outputs, attached to the live slots.
struct LiveHost {
  Host host;
  HostOutputs outputs;
  std::string note;                  // "weights matched by order", for the card
  bool weights_are_its_own = false;  // they fit the reference's neither by name nor by shape
  // The judge may read its memory: known before it loads what is judged, which could make itself
  // unreadable.
  bool may_be_read = false;
  uint32_t slot_count = 0;  // that it prepared for blocks; 0: it is not in blocks
};

// Has it in blocks, stopped, with as many slots prepared as the live plan has now: it enters them,
// or leaves them and enters anew.
HostResult<void> EnterBlocks(LiveHost& host, const LiveSlots& live, double timeout_s);

// What a candidate's hosts are made of; the same for all of them.
struct CandidateHostSetup {
  const BuiltCandidate& candidate;
  const CandidateLimits& limits;
  const PythonRuntime& python;
  const Oracle& oracle;
  const LiveSlots& live;
  const std::string& settings;
  const Gpu* gpu = nullptr;  // null: they do without
  int threads = 1;
  InterruptFlag interrupt = nullptr;
  const HostTool* tool = nullptr;  // that the hosts run under; null: none
};

// Hands out fresh hosts, each with the candidate loaded, in the block loop and frozen. Native hosts
// on the CPU start when they are asked for (10 ms); others several at a time, since importing
// PyTorch takes a second of one core, and starting CUDA a part of one. One that has loaded the
// candidate is stopped until it is taken: it would see the values that are shown to others, and
// disturb them.
class CandidateHosts {
 public:
  explicit CandidateHosts(CandidateHostSetup setup) : setup_(setup) {}
  // The host of this pair; `pairs_coming` says how many python hosts may start side by side, this
  // one included. Pairs are asked for in order; the live slots must be those of the blocks to come.
  HostResult<LiveHost> Take(int pair_index, int pairs_coming);
  // Lets the hosts of `count` pairs begin to import PyTorch, or to start CUDA; nothing of the
  // candidate is loaded before Take() asks for them. Does nothing for a native candidate on the
  // CPU, where memory is scarce, and where hosts have begun already.
  void Prefetch(int first_pair_index, int count);
  // Waits until those have imported it, and sleep. One that failed to is dropped.
  void AwaitImports();
  // Ends those that nobody took.
  void Drop();
  // Seconds since hosts that nobody took yet began to start; 0 where there are none.
  double BegunForS() const;

 private:
  struct Begun {
    LiveHost host;
    bool greeted = false;
  };
  bool IsPython() const { return setup_.candidate.source.form == CandidateForm::kPython; }
  // PyTorch is imported, or CUDA starts.
  bool StartsSlowly() const { return IsPython() || setup_.gpu != nullptr; }
  // How many of `wanted` hosts start at the same time; `ahead`: of those that load later.
  int SideBySide(int wanted, bool ahead) const;
  HostResult<LiveHost> Spawn(int pair_index) const;
  HostResult<void> AttachImage(Host& host) const;
  HostResult<void> Load(Begun& begun) const;
  HostResult<void> Finish(LiveHost& host) const;
  HostResult<void> StartBatch(int first_pair_index, int count);

  CandidateHostSetup setup_;
  int64_t begun_ns_ = 0;     // when Prefetch() began some
  std::deque<Begun> begun_;  // nothing of the candidate is in these
  std::deque<LiveHost> ready_;
};

// A fault that the host reported, in words: "it wrote to its input x (inputs are read-only)" or "it
// read or wrote at 0x10, outside of every buffer"; empty when it reported none.
std::string DescribeFault(const LiveHost& host, const LiveSlots& live);

}  // namespace assay
