// The trusted reference host that knows the answers: it describes the problem, makes inputs under
// the judge's seeds, and computes expected outputs in the native dtype and in float64. No
// candidate's host ever maps its slots (the masters). Masters take memory only once they are
// touched.
#pragma once

#include <bitset>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "builders/constants.h"
#include "hosts/host.h"
#include "hosts/python_runtime.h"
#include "machine/shared_region.h"
#include "model/problem.h"
#include "rules/moved_elements.h"
#include "rules/selection.h"
#include "values/judge_device.h"
#include "values/memory_plan.h"
#include "values/module_state.h"
#include "values/oracle_host.h"
#include "values/varied_weights.h"

namespace assay {

// Changes each floating-point input by a random share of itself, up to 2^-bits. Seed 0: changes
// nothing.
struct Nudge {
  uint64_t seed = 0;
  int bits = 0;
};

class Oracle {
 public:
  // Errors: kUsage for faults of the problem's file, kEnvironment for the machine's. `refusal` (may
  // be null) is set to the failure if loading refused the problem.
  static Result<Oracle> Open(OracleOptions options,
                             std::optional<wire::Failure>* refusal = nullptr);
  // The same with a host from StartOracleHost, which may have held another size before. The Oracle
  // of that size can then no longer draw.
  static Result<Oracle> Open(OracleOptions options, std::shared_ptr<Host> host,
                             std::optional<wire::Failure>* refusal = nullptr);
  // The same with the host's estimate of the problem.
  static Result<Oracle> Open(OracleOptions options, std::shared_ptr<Host> host,
                             ProblemEstimate estimate,
                             std::optional<wire::Failure>* refusal = nullptr);
  // Opens the problem at the constants `options.problem.set`, other than those of the host's start.
  // It may use less memory: most is for the timed size.
  static Result<Oracle> OpenOther(OracleOptions options, std::shared_ptr<Host> host);

  const ProblemDescription& description() const { return description_; }
  const WorkAccount& account() const { return account_; }
  const wire::Plan& plan() const { return *plan_.as<wire::Plan>(); }
  const std::string& init_arguments() const { return init_arguments_; }
  // The numbers among the constants of the problem's file, at this size.
  const Constants& constants() const { return constants_; }
  // The number of master slots, and of those with a float64 side.
  uint32_t slots_max() const { return slots_max_; }
  uint32_t oracle_slots_max() const { return oracle_slots_max_; }
  // Limit of this problem's values [bytes]: as asked for, or an eighth of that for OpenOther's.
  uint64_t memory_bytes() const { return options_.memory_bytes; }
  // How the values share that limit; of a device.
  MemoryPlan MemoryShared() const;
  // True if the limit leaves little beside what a judgement takes at least; of a device.
  bool FitsBarely() const;

  // Draws inputs into a master slot and computes its native outputs, and float64 ones if asked for
  // and supported. Returns how many tensors the kind changed; 0 for an ordinary draw. Trouble
  // kFailed with kDrawMeaningless or kProblemForward: the reference cannot take such a draw.
  HostResult<uint64_t> Fill(uint32_t slot, uint64_t seed, wire::DrawKind kind, bool float64);
  // Makes the same draw with nudged inputs, and computes its float64 outputs alone, which must be
  // supported.
  HostResult<void> FillNudged(uint32_t slot, uint64_t seed, wire::DrawKind kind,
                              const Nudge& nudge);
  // Makes `count` draws for timed calls, without float64, into the slots from `first` on, under the
  // seeds from `seed` on: ordinary ones, or `with_signs` every other one with random signs, if they
  // give no NaN. If weights vary, each is computed with the version of its seed.
  HostResult<void> FillOrdinary(uint32_t first, uint32_t count, uint64_t seed, bool with_signs);
  // The kind and the seed of a master's last draw.
  wire::DrawKind kind_of(uint32_t slot) const { return fills_.at(slot).kind; }
  uint64_t seed_of(uint32_t slot) const { return fills_.at(slot).seed; }
  // Once a draw of random signs was asked for: the inputs, by number, that keep their signs because
  // the reference needs it.
  const std::bitset<64>& KeptSigns() const { return kept_signs_; }

  // Sets the version of the weights (values/varied_weights.h) with which Fill computes.
  HostResult<void> ShowWeights(uint64_t version);
  // Returns the version with which a master was computed.
  uint64_t weights_of(uint32_t slot) const {
    return slot < fills_.size() ? fills_[slot].weights : 0;
  }
  const std::shared_ptr<const VariedWeights>& varied_weights() const { return varied_; }
  // Some weights that the constructor makes all equal got random values.
  bool randomised_weights() const { return randomised_weights_; }
  // Without a device: the weights of the present version.
  const std::byte* weights() const { return weights_.data(); }

  bool on_device() const { return options_.device != nullptr; }
  // Elements of this master's outputs whose truth rounding moves (correctness/rounding.h), by
  // output. KnowsMoved: true if they were determined since the master was filled.
  bool KnowsMoved(uint32_t slot) const;
  std::span<const MovedElement> moved(uint32_t slot, size_t output) const;
  void SetMoved(uint32_t slot, std::vector<std::vector<MovedElement>> moved);

  // Fails (kEnvironment) if a copy from the device failed.
  HostResult<void> CopiesHold() const;

  // Returns the running number of this slot's last fill; 0: never filled.
  uint64_t fill_number(uint32_t slot) const {
    return slot < fills_.size() ? fills_[slot].number : 0;
  }

  // Returns the `--set` options with which a value would have about this share of its bytes, or
  // fewer; empty: none were found.
  std::string SetForShare(double share);

  // Returns the host's list of the reference's mutants, as JSON
  // (host/python/assay_host/mutants.py); the slot holds an ordinary draw. kOperators: of single
  // operators alone, none of which was tried before; some may do nothing.
  enum class Mutants : uint64_t { kAll, kOperators };
  HostResult<std::string> ListMutants(uint32_t slot, Mutants which);
  // Runs a mutant on the draw in `slot`; writes its outputs into slot `target`, over poison.
  struct Mutation {
    bool changed = false;  // its outputs differ in value from the reference's
    bool threw = false;    // it gave no outputs
  };
  HostResult<Mutation> Mutate(uint64_t mutant, uint32_t slot, uint32_t target);

  // Returns the values that `indices`, in the place of output number `output`, select on the draw
  // in `slot`; nullopt if that output is not the indices of a selection. Another size's oracle
  // starts a reference of its own for it, once.
  HostResult<std::optional<SelectedValues>> Select(uint32_t slot, size_t output,
                                                   std::span<const std::byte> indices);

  // Asks the problem's own check (description().own_check) about outputs, laid out as in a slot, of
  // the draw in `slot`. Returns the sentence that says what is wrong; nullopt: they are right.
  // Another size's oracle may start a reference for it, as for Select. Trouble kFailed with
  // kProblemCheck: the check throws, takes too long, or gives neither None nor a sentence.
  HostResult<std::optional<std::string>> AskCheck(uint32_t slot,
                                                  std::span<const std::byte> outputs);

  // Returns the state that forward leaves in the module after one call on the draw in `slot`, from
  // the state that the constructor made.
  HostResult<ModuleState> StateAfter(uint32_t slot);

  // Returns what to write into the problem's file if its forward calls a function whose answer is
  // not unique, such as eigh, and the file has no check; else empty.
  std::string AdviceOnManyAnswers() const;

  // Returns true if a check took the host with it, so that nothing can be asked any more.
  bool EndedByCheck() const { return ended_by_check_; }

  // A master's inputs and outputs. If masters lie on a device these are copies, valid until the
  // next call for another slot.
  const std::byte* inputs(uint32_t slot) const;
  const std::byte* outputs(uint32_t slot) const;
  const std::byte* oracle(uint32_t slot) const;  // float64
  // Copies a part of a master's kInputs, kOutputs or kOracle, from a device that part alone.
  // Numbers are not among what lies there. CopiesHold() tells of failures.
  void Read(wire::Region region, uint32_t slot, uint64_t offset, std::span<std::byte> target) const;
  // Their addresses on the device; numbers among the inputs are in inputs() alone.
  cuda::Pointer device_inputs(uint32_t slot) const {
    return device_inputs_.address() + uint64_t{slot} * plan().input_stride;
  }
  cuda::Pointer device_outputs(uint32_t slot) const {
    return device_outputs_.address() + uint64_t{slot} * plan().output_stride;
  }
  // A slot's numbers, at their offsets among the inputs.
  const std::byte* numbers(uint32_t slot) const {
    return inputs_.data() + uint64_t{slot} * plan().input_stride;
  }
  cuda::Pointer device_oracle(uint32_t slot) const {
    return device_oracle_.address() + uint64_t{slot} * plan().oracle_stride;
  }

  // On a device: measures the error of an output at any address there against float64, and that of
  // the reference's own; nullopt if it cannot be measured. AgainstTruth describes the comparison.
  std::optional<JudgeKernels::Measured> Measure(const wire::ArgumentSpec& output,
                                                cuda::Pointer candidate, uint32_t slot) const;
  gpu::TruthComparison AgainstTruth(const wire::ArgumentSpec& output, cuda::Pointer candidate,
                                    uint32_t slot) const;

 private:
  Oracle() = default;
  CallBytes BytesOfCall() const;
  Result<void> Load(std::optional<wire::Failure>* refusal);
  Result<void> ShareSlots();
  // Marks `count` slots from `first` on as filled anew.
  HostResult<void> BeginFill(uint32_t first, uint32_t count);
  HostResult<uint64_t> Draw(uint32_t slot, uint64_t seed, wire::DrawKind kind, const Nudge& nudge);
  HostResult<void> EvaluateInFloat64(uint32_t slot);
  Result<void> ShareMastersOnDevice();
  Result<void> StoreWeights();
  // Returns how far versions of the weights may differ: careful if drawn ones make the reference
  // fail, or give a NaN or an infinity where its own weights give none.
  Result<Reach> ReachOfVersions();
  // Computes the first master with a version of the weights. Returns how many elements of its
  // outputs are NaN or infinite; nullopt: the reference failed.
  Result<std::optional<uint64_t>> NonFiniteWith(uint64_t version);
  Result<void> ShowOnDevice(uint64_t version);
  // On a device: copies the host's weights, and keeps them there, too.
  Result<void> KeepConstructed(std::vector<std::byte>* constructed);
  HostResult<void> FillSlots(uint32_t first, uint32_t count, uint64_t seed, bool with_signs);
  // A slot's copy from the device.
  struct Fetched {
    uint64_t fill = 0;
    std::vector<std::byte> content;
  };
  const std::byte* Fetch(Fetched* fetched, uint32_t slot, cuda::Pointer from,
                         uint64_t size_bytes) const;

  OracleOptions options_;
  uint64_t float64_whole_bytes_ = 0;  // up to which float64 goes whole
  std::shared_ptr<Host> host_;
  bool other_ = false;  // loads the constants of options_.problem, not those of the host's start
  ProblemDescription description_;
  WorkAccount account_;
  SharedRegion plan_, inputs_, outputs_, oracle_, weights_;
  // On a device: only the oracle's host maps these. `inputs_` then holds numbers only.
  DeviceRegion device_inputs_, device_outputs_, device_oracle_, device_weights_,
      device_constructed_;
  mutable Fetched fetched_inputs_, fetched_outputs_, fetched_oracle_;
  mutable std::optional<Error> device_error_;
  std::shared_ptr<const VariedWeights> varied_ = std::make_shared<VariedWeights>();
  bool randomised_weights_ = false;
  uint64_t many_answers_ = 0;  // 0: no; else the kind, as the host numbers them
  std::bitset<64> kept_signs_;
  uint64_t shown_version_ = 0;  // in the host's weights
  bool float64_weights_stale_ = false;
  // Calls `ask` with an oracle whose host holds this problem, and with the slot of this draw there.
  // The draw's weights are shown meanwhile.
  template <typename Ask>
  auto AskAbout(uint32_t slot, const Ask& ask) -> decltype(ask(*this, slot));
  HostResult<std::optional<SelectedValues>> AskWhatIsSelected(uint32_t slot, size_t output,
                                                              std::span<const std::byte> indices);
  HostResult<ModuleState> AskState(uint32_t slot);
  HostResult<std::optional<std::string>> AskWhatIsWrong(uint32_t slot,
                                                        std::span<const std::byte> outputs);
  struct Filled {
    uint64_t number = 0, weights = 0;
    uint64_t seed = 0;
    wire::DrawKind kind = wire::DrawKind::kOrdinary;
  };
  uint64_t filled_ = 0;
  std::vector<Filled> fills_;  // by slot
  struct Moved {
    uint64_t fill = 0;
    std::vector<std::vector<MovedElement>> elements;  // by output
  };
  std::map<uint32_t, Moved> moved_;  // by slot
  // Once the host has loaded another size: answers Select and AskCheck.
  std::shared_ptr<Oracle> second_;
  uint64_t second_fill_ = 0;  // this oracle's fill that the second one holds
  bool ended_by_check_ = false;
  uint64_t load_ = 0;  // the number of the host's load that was this problem's
  std::string init_arguments_;
  Constants constants_;
  uint32_t slots_max_ = 0, oracle_slots_max_ = 0;
};

}  // namespace assay
