// The side of a real host: blocks in live slots, outputs compared with the oracle's masters.
#pragma once

#include "speed/gate2_terms.h"
#include "speed/side.h"

namespace assay {

// Time that a block may take beyond the time-out of one call: blocks of several calls are made to
// last a fifth of a second at most [s].
inline constexpr double kBlockGraceS = 2;

class HostSide : public Side {
 public:
  // `host` and `values` outlive it. `call_timeout_s`: of one call.
  HostSide(LiveHost& host, bool is_candidate, const GateValues& values, double call_timeout_s)
      : host_(host),
        is_candidate_(is_candidate),
        values_(values),
        timeout_s_(call_timeout_s + kBlockGraceS) {}

  bool is_candidate() const override { return is_candidate_; }
  HostResult<void> EnterAgain() override;
  void Poison() override { values_.live.Poison(host_.outputs); }
  void PoisonSlot(uint32_t slot) override { values_.live.PoisonSlot(host_.outputs, slot); }
  void Flush(std::span<const uint32_t> slots) override;
  HostResult<SideBlock> RunBlock(std::span<const uint32_t> order, BlockMode mode) override;
  HostResult<void> RunUncounted(std::span<const uint32_t> order, BlockMode mode) override;
  std::optional<ClockState> Clock() override { return values_.live.Clock(); }
  // Without the defence of timed checks all is right.
  BlockCheck Check(std::span<const uint32_t> called, const FilledSlots& filled) override;
  BlockCheck CheckOne(uint32_t slot, uint32_t master, const Draw* probe) override;
  bool WroteAstray(std::span<const uint32_t> called) override;
  void Read() override { values_.live.Read(host_.outputs); }
  int64_t PageFaults() override { return host_.host.PageFaults(); }

  LiveHost& host() { return host_; }
  double timeout_s() const { return timeout_s_; }  // of a block

 private:
  // `settled`: the check of the device's, if it has one.
  CallCheck CheckCall(uint32_t slot, uint32_t master, const Draw* probe,
                      const std::optional<CallCheck>& settled);
  // The kind of a call's values, and the reference's own errors on such ones.
  wire::DrawKind KindOf(uint32_t master, const Draw* probe) const;
  std::span<const ReferenceError> ErrorsOf(wire::DrawKind kind) const;
  // Checks a call on values with random signs again, against float64. There a sum may be close to
  // zero, or an element at a threshold, where the reference's error on other values says little.
  CallCheck CheckAgain(uint32_t slot, uint32_t master, const HintContext& context, CallCheck check);

  LiveHost& host_;
  bool is_candidate_;
  const GateValues& values_;
  double timeout_s_;
};

}  // namespace assay
