// The trusted reference host that knows the answers: it describes the problem, makes inputs under
// the judge's seeds, and computes expected outputs in the native dtype and in float64. Its slots
// (the masters) are never shown to a candidate's host. Masters lie in memory that exists only once
// touched.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hosts/host.h"
#include "hosts/python_runtime.h"
#include "machine/shared_region.h"
#include "model/problem.h"
#include "rules/moved_elements.h"
#include "values/judge_device.h"
#include "values/varied_weights.h"

namespace assay {

struct OracleOptions {
  ProblemRequest problem;
  PythonRuntime python;
  int threads = 1;
  uint64_t weights_seed = 0;
  uint64_t memory_bytes = 0;  // that all slots together may take
  uint32_t slots_most = 0;    // that may be wanted; 0: as many as there may be
  double timeout_s = 120;     // for one evaluation
  JudgeDevice* device = nullptr;  // where the reference runs; null: on the CPU
  StopToken stop;
};

// A host for the reference whose code is trusted, started and greeted, with the problem in place.
Result<std::unique_ptr<Host>> StartOracleHost(const OracleOptions& options);

// A request that answers with text in a memory file: its reply, and the first `size_arg` bytes.
struct TextReply {
  wire::Frame frame;
  std::string text;
};
HostResult<TextReply> RequestText(Host& host, wire::FrameKind kind, uint64_t argument,
                                  size_t size_arg, double timeout_s);

// Refuses a problem that needs more than `memory_bytes` before anything is allocated; else what the
// host's estimate says of it.
struct ProblemEstimate {
  WorkAccount account;
  uint64_t input_bytes = 0, parameter_bytes = 0, output_bytes = 0;
};
Result<ProblemEstimate> EstimateProblem(Host& host, uint64_t memory_bytes, double timeout_s);

// A reference host's trouble as the request's error.
Error OracleError(const HostTrouble& trouble);

// Each floating-point input changes by a random share of itself, up to 2^-bits. Seed 0: none does.
struct Nudge {
  uint64_t seed = 0;
  int bits = 0;
};

class Oracle {
 public:
  // Errors: kUsage for whatever is wrong with the problem's file, kEnvironment for the machine.
  // `refusal` (may be null) is set to the failure where the problem was refused as it was loaded.
  static Result<Oracle> Open(OracleOptions options,
                             std::optional<wire::Failure>* refusal = nullptr);
  // The same with a host that StartOracleHost started and that may have held another size before;
  // that one's Oracle can then draw no more.
  static Result<Oracle> Open(OracleOptions options, std::shared_ptr<Host> host,
                             std::optional<wire::Failure>* refusal = nullptr);
  // The problem of `options.problem` at other constants than those that the host was started with:
  // at `options.problem.set`. With less memory, since most is for the size that is timed.
  static Result<Oracle> OpenOther(OracleOptions options, std::shared_ptr<Host> host);

  const ProblemDescription& description() const { return description_; }
  const WorkAccount& account() const { return account_; }
  const wire::Plan& plan() const { return *plan_.as<wire::Plan>(); }
  const SharedRegion& weights() const { return weights_; }
  const std::string& init_arguments() const { return init_arguments_; }
  // Master slots that there may be, and how many of them have a float64 side.
  uint32_t slots_max() const { return slots_max_; }
  uint32_t oracle_slots_max() const { return oracle_slots_max_; }
  // What this problem's values may take [bytes]: what was asked for, or an eighth for OpenOther's.
  uint64_t memory_bytes() const { return options_.memory_bytes; }

  // Draws inputs into a master slot and computes its native outputs (and float64 ones where asked
  // and supported). kFailed with kDrawMeaningless or kProblemForward: the reference cannot take
  // such a draw. Returns how many tensors the kind changed; of an ordinary draw, 0.
  HostResult<uint64_t> Fill(uint32_t slot, uint64_t seed, wire::DrawKind kind, bool float64);
  // The same draw with its inputs nudged, and its float64 outputs alone, which must be supported.
  HostResult<void> FillNudged(uint32_t slot, uint64_t seed, wire::DrawKind kind,
                              const Nudge& nudge);
  // The same for ordinary draws without float64, into `count` slots from `first` on, under as many
  // seeds from `seed` on: in one request.
  HostResult<void> FillOrdinary(uint32_t first, uint32_t count, uint64_t seed);

  // Puts a version of the weights there, for all hosts (values/varied_weights.h); Fill then
  // expects what the reference gives with it. No host under test may run.
  void ShowWeights(uint64_t version);

  bool on_device() const { return options_.device != nullptr; }
  bool weights_vary() const { return varied_.any_vary(); }
  // Differs whenever the weights do, and never falls.
  uint64_t weights_version() const { return weights_shown_; }
  // Elements of this master's outputs whose truth rounding moves (correctness/rounding.h): whether
  // anybody asked since it was filled, and what the answer was, by output; empty: there are none.
  bool KnowsMoved(uint32_t slot) const;
  std::span<const MovedElement> moved(uint32_t slot, size_t output) const;
  void SetMoved(uint32_t slot, std::vector<std::vector<MovedElement>> moved);

  // Copies from the device, if any, were made. Errors: kEnvironment.
  HostResult<void> CopiesHold() const;

  // How many times anything was filled when this slot was last; 0: it never was.
  uint64_t fill_number(uint32_t slot) const { return slot < fills_.size() ? fills_[slot] : 0; }

  // What wrong candidates would give, as the host lists it (host/python/assay_host/mutants.py); the
  // slot holds an ordinary draw.
  HostResult<std::string> ListMutants(uint32_t slot);
  // One of them, for the draw in `slot`: its outputs come to lie in `target`, over poison.
  struct Mutation {
    bool changed = false;  // its outputs differ from the reference's by value
    bool threw = false;    // it gave none
  };
  HostResult<Mutation> Mutate(uint64_t mutant, uint32_t slot, uint32_t target);

  // A master's inputs and outputs. Where masters lie on a device these are copies, valid
  // until another slot's are asked for.
  const std::byte* inputs(uint32_t slot) const;
  const std::byte* outputs(uint32_t slot) const;
  const std::byte* oracle(uint32_t slot) const;  // float64
  // The same where they lie on the device; numbers among the inputs are in inputs() alone.
  cuda::Pointer device_inputs(uint32_t slot) const {
    return device_inputs_.address() + uint64_t{slot} * plan().input_stride;
  }
  cuda::Pointer device_outputs(uint32_t slot) const {
    return device_outputs_.address() + uint64_t{slot} * plan().output_stride;
  }
  // A slot's numbers, at the offsets of its inputs.
  const std::byte* numbers(uint32_t slot) const {
    return inputs_.data() + uint64_t{slot} * plan().input_stride;
  }
  cuda::Pointer device_oracle(uint32_t slot) const {
    return device_oracle_.address() + uint64_t{slot} * plan().oracle_stride;
  }

  // On a device: how far the reference's own output is from float64 (nothing: this cannot be
  // measured), and what compares something else there with it.
  std::optional<JudgeKernels::Measured> MeasureReference(const wire::ArgumentSpec& output,
                                                         uint32_t slot) const;
  // A slot of outputs of the judge's own making, copied there to be measured; nothing where there
  // is no room.
  std::optional<DeviceRegion> Place(const std::byte* outputs) const;
  std::optional<JudgeKernels::Measured> Measure(const wire::ArgumentSpec& output,
                                                const DeviceRegion& placed, uint32_t slot) const;
  gpu::TruthComparison AgainstTruth(const wire::ArgumentSpec& output, cuda::Pointer candidate,
                                    uint32_t slot) const;

 private:
  Oracle() = default;
  Result<void> Load(std::optional<wire::Failure>* refusal);
  Result<void> ShareSlots();
  // Slots from `first` on are about to hold something else.
  HostResult<void> BeginFill(uint32_t first, uint32_t count);
  HostResult<uint64_t> Draw(uint32_t slot, uint64_t seed, wire::DrawKind kind, const Nudge& nudge);
  HostResult<void> EvaluateInFloat64(uint32_t slot);
  Result<void> ShareMastersOnDevice();
  // A slot as copied from the device before, or now.
  struct Fetched {
    uint64_t fill = 0;
    std::vector<std::byte> content;
  };
  std::optional<JudgeKernels::Measured> MeasureAt(const wire::ArgumentSpec& output,
                                                  cuda::Pointer candidate, uint32_t slot) const;
  const std::byte* Fetch(Fetched* fetched, uint32_t slot, cuda::Pointer from,
                         uint64_t size_bytes) const;

  OracleOptions options_;
  std::shared_ptr<Host> host_;
  bool other_ = false;  // loads the constants of options_.problem, not the host's
  ProblemDescription description_;
  WorkAccount account_;
  SharedRegion plan_, inputs_, outputs_, oracle_, weights_;
  // On a device: shown to the oracle's own host alone. `inputs_` then holds numbers only.
  DeviceRegion device_inputs_, device_outputs_, device_oracle_;
  mutable Fetched fetched_inputs_, fetched_outputs_, fetched_oracle_;
  mutable std::optional<Error> device_error_;
  VariedWeights varied_;
  bool float64_weights_stale_ = false;
  uint64_t weights_shown_ = 0, filled_ = 0;
  std::vector<uint64_t> fills_;
  struct Moved {
    uint64_t fill = 0;
    std::vector<std::vector<MovedElement>> elements;  // by output
  };
  std::map<uint32_t, Moved> moved_;  // by slot
  std::string init_arguments_;
  uint32_t slots_max_ = 0, oracle_slots_max_ = 0;
};

// How the weights are treated: "varied", "constant" (they stay the same in all calls) or
// "constructed" (and are those of the constructor).
std::string WeightsTreatment(const ProblemRequest& problem);

// settings.json of a reference or candidate host.
std::string HostSettings(const ProblemRequest& problem, int threads, uint64_t weights_seed,
                         std::string_view baseline);

}  // namespace assay
