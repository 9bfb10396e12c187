// Stand-ins for the two sides of a pair and for their inputs: blocks with scripted outcomes.
#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "speed/gate_parts.h"

namespace assay {

// One block of a side, as a script has it.
struct ScriptedBlock {
  double call_ns = 10e3;
  double replayed_ns = 0;  // the same as a replay; 0: call_ns
  int64_t waited_ns = 0;   // for a core
  bool is_void = false;    // it gets no block
  bool must_copy = false;
  bool missed = false;      // runs call by call, though it was to be a replay
  bool wrong = false;       // its outputs, but for the last call's
  bool last_wrong = false;  // the last call's, too
  int64_t uncharged_ns = 0;
};

// Inputs with numbered masters, all of them new.
class FakeInputs : public Inputs {
 public:
  BlockLimits Limits() const override { return limits; }
  void Prepare(uint32_t slots) override { prepared = slots; }
  HostResult<FilledSlots> Fill(ValuesFor side, uint32_t slots, uint32_t) override {
    FilledSlots filled;
    for (uint32_t i = 0; i < slots; ++i) filled.masters.push_back(next_master++);
    fills.push_back(side);
    return filled;
  }
  HostResult<std::vector<uint32_t>> Take(ValuesFor, uint32_t count) override {
    std::vector<uint32_t> taken;
    for (uint32_t i = 0; i < count; ++i) taken.push_back(next_master++);
    return taken;
  }
  void FillSlot(uint32_t, uint32_t) override {}
  double CostNs(uint32_t) override { return 0; }
  bool TakeBusy() override { return std::exchange(busy, false); }

  BlockLimits limits{false, 4096, 4096, 0};
  bool busy = false;
  uint32_t prepared = 0;
  uint32_t next_master = 1;
  std::vector<ValuesFor> fills;  // the side of each
};

// A side that runs its script, and then `usual` blocks.
class FakeSide : public Side {
 public:
  explicit FakeSide(bool is_candidate) : is_candidate_(is_candidate) {}

  bool is_candidate() const override { return is_candidate_; }
  HostResult<void> EnterAgain() override {
    ++entered;
    return {};
  }
  void Poison() override { ++poisoned; }
  void PoisonSlot(uint32_t) override { ++poisoned; }
  void Flush(std::span<const uint32_t>) override {}
  HostResult<SideBlock> RunBlock(std::span<const uint32_t> order, BlockMode mode) override {
    ran = usual;
    if (!script.empty()) {
      ran = script.front();
      script.pop_front();
    }
    modes.push_back(mode);
    call_counts.push_back(order.size());
    if (ran.is_void) return HostFailed(HostTrouble::Kind::kVoid, "it ran while it was asleep");
    SideBlock block;
    const bool replayed = mode.replay && !ran.missed;
    const double call_ns = replayed && ran.replayed_ns > 0 ? ran.replayed_ns : ran.call_ns;
    block.result.time_ns = static_cast<int64_t>(call_ns * static_cast<double>(order.size()));
    block.result.waited_ns = ran.waited_ns;
    block.result.uncharged_ns = ran.uncharged_ns;
    block.result.must_copy = ran.must_copy;
    block.replayed = replayed;
    return block;
  }
  // With results in slots nothing is written over.
  HostResult<void> RunUncounted(std::span<const uint32_t>, BlockMode mode) override {
    ++uncounted;
    ran.wrong = wrong_in_slots || mode.results != wire::Results::kIntoSlots;
    return {};
  }
  std::optional<ClockState> Clock() override { return std::nullopt; }

  BlockCheck Check(std::span<const uint32_t> called, const FilledSlots& filled) override {
    ++checks;
    masters = filled.masters;
    return Checked(static_cast<int64_t>(called.size()), !ran.wrong && !ran.last_wrong);
  }
  BlockCheck CheckOne(uint32_t, uint32_t, const Draw*) override {
    return Checked(1, !ran.last_wrong);
  }
  bool WroteAstray(std::span<const uint32_t>) override { return astray; }
  void Read() override { ++reads; }
  int64_t PageFaults() override { return 0; }

  ScriptedBlock usual;
  std::deque<ScriptedBlock> script;
  bool astray = false;
  bool wrong_in_slots = false;

  ScriptedBlock ran;  // last
  std::vector<BlockMode> modes;
  std::vector<size_t> call_counts;
  std::vector<uint32_t> masters;  // of the block that was checked last
  int entered = 0, poisoned = 0, uncounted = 0, checks = 0, reads = 0;

 private:
  static BlockCheck Checked(int64_t calls, bool right) {
    BlockCheck check;
    check.calls = calls;
    check.error_ratio = right ? 0.1 : 100;
    if (right) return check;
    check.wrong.emplace();
    check.wrong->passed = false;
    check.wrong->hint = "element 0 is off";
    return check;
  }

  bool is_candidate_;
};

// Both sides and their inputs, with the parts of a gate. Its random numbers are the same each time.
struct FakeGate {
  FakeGate() : FakeGate(Forms{}) {}
  explicit FakeGate(const Forms& forms_in, BlockLimits limits = {false, 4096, 4096, 0})
      : forms(forms_in) {
    inputs.limits = limits;
    parts.emplace(forms, terms, inputs, random, budget);
  }

  Forms forms;
  Terms terms;
  FakeInputs inputs;
  std::mt19937_64 random{1};
  Deadline budget = Deadline::AfterSeconds(60);
  FakeSide reference{false}, candidate{true};
  std::optional<GateParts> parts;
};

}  // namespace assay
