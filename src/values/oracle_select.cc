// Oracle::Select and AskCheck: ask a reference for the values behind indices, and the problem's own
// check about outputs.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/trace.h"
#include "values/oracle.h"

namespace assay {
namespace {

constexpr uint32_t kSecondSlots = 2;  // of a second reference, which holds one draw

const wire::ArgumentSpec& OutputSpec(const wire::Plan& plan, size_t output) {
  for (uint32_t i = 0; i < plan.argument_count; ++i)
    if (plan.arguments[i].role == wire::Role::kOutput && output-- == 0) return plan.arguments[i];
  ASSAY_CHECK(!"an output that does not exist");
}

// Reads the reply and the three arrays behind one another.
std::optional<SelectedValues> ReadReply(const wire::Frame& reply, const std::byte* data,
                                        size_t count) {
  SelectedValues selected;
  selected.dtype = static_cast<DType>(reply.args[1]);
  const size_t element = wire::ElementBytes(selected.dtype);
  if (element == 0 || reply.args[3] >= std::max<size_t>(count, 1)) return std::nullopt;
  selected.exact = reply.args[2] != 0;
  selected.first_fault = static_cast<int64_t>(reply.args[3]);
  selected.out_of_range = static_cast<int64_t>(reply.args[4]);
  selected.repeated = static_cast<int64_t>(reply.args[5]);
  selected.has_truth = reply.args[6] != 0;
  selected.has_windows = reply.args[7] != 0;
  selected.candidate.assign(data, data + count * element);
  selected.reference.assign(data + count * element, data + 2 * count * element);
  selected.truth.resize(count);
  std::memcpy(selected.truth.data(), data + 2 * count * element, count * sizeof(double));
  return selected;
}

// The trouble of a host that a check used: the problem's fault, whatever the check did to the host.
std::unexpected<HostTrouble> TroubleOfCheck(HostTrouble trouble, double timeout_s) {
  using Kind = HostTrouble::Kind;
  if (trouble.kind == Kind::kFailed || trouble.kind == Kind::kInterrupted ||
      trouble.kind == Kind::kEnvironment)
    return std::unexpected(std::move(trouble));
  std::string message =
      trouble.kind == Kind::kTimedOut
          ? fmt::format("the problem's own check did not end within {:.0f} s", timeout_s)
          : "the problem's own check ended the reference's host: " + trouble.message;
  auto failed = HostFailed(Kind::kFailed, std::move(message));
  failed.error().failure = wire::Failure::kProblemCheck;
  return failed;
}

}  // namespace

template <typename Ask>
auto Oracle::AskAbout(uint32_t slot, const Ask& ask) -> decltype(ask(*this, slot)) {
  if (host_->loads() == load_) {
    // Values of the first batch may have come after this draw, with weights of their own.
    const uint64_t shown = shown_version_;
    if (auto set = ShowWeights(weights_of(slot)); !set) return std::unexpected(set.error());
    auto answer = ask(*this, slot);
    if (auto set = ShowWeights(shown); !set) return std::unexpected(set.error());
    return answer;
  }
  if (!second_) {
    OracleOptions options = options_;
    options.slots_most = kSecondSlots;
    auto opened = Open(std::move(options));
    if (!opened && opened.error().kind == ErrorKind::kInterrupted)
      return HostFailed(HostTrouble::Kind::kInterrupted, "interrupted");
    if (!opened) return HostFailed(HostTrouble::Kind::kEnvironment, opened.error().message);
    second_ = std::make_shared<Oracle>(std::move(*opened));
  }
  const Filled& filled = fills_.at(slot);
  if (auto set = second_->ShowWeights(filled.weights); !set) return std::unexpected(set.error());
  if (second_fill_ != filled.number) {
    second_fill_ = 0;
    if (auto drawn = second_->Fill(0, filled.seed, filled.kind, false); !drawn)
      return std::unexpected(drawn.error());
    second_fill_ = filled.number;
  }
  return ask(*second_, 0);
}

HostResult<std::optional<SelectedValues>> Oracle::Select(uint32_t slot, size_t output,
                                                         std::span<const std::byte> indices) {
  const Span span("ask what indices select");
  return AskAbout(slot, [&](Oracle& oracle, uint32_t there) {
    return oracle.AskWhatIsSelected(there, output, indices);
  });
}

HostResult<std::optional<std::string>> Oracle::AskCheck(uint32_t slot,
                                                        std::span<const std::byte> outputs) {
  const Span span("ask the problem's check");
  return AskAbout(
      slot, [&](Oracle& oracle, uint32_t there) { return oracle.AskWhatIsWrong(there, outputs); });
}

HostResult<ModuleState> Oracle::StateAfter(uint32_t slot) {
  return AskAbout(slot, [](Oracle& oracle, uint32_t there) { return oracle.AskState(there); });
}

HostResult<ModuleState> Oracle::AskState(uint32_t slot) {
  auto memory = StateMemory();
  if (!memory) return HostFailed(HostTrouble::Kind::kEnvironment, memory.error().message);
  const uint64_t args[] = {slot};
  auto told = host_->Request(wire::FrameKind::kState, args, options_.timeout_s, memory->fd());
  if (!told) return std::unexpected(told.error());
  ModuleState state;
  state.memory = std::move(*memory);
  state.text_bytes = std::min(told->args[0], state.memory.size_bytes());
  state.left_out = told->args[1];
  auto tensors = ParseState({reinterpret_cast<const char*>(state.memory.data()), state.text_bytes},
                            state.memory.size_bytes());
  if (!tensors) return HostFailed(HostTrouble::Kind::kEnvironment, tensors.error().message);
  state.tensors = std::move(*tensors);
  return state;
}

HostResult<std::optional<std::string>> Oracle::AskWhatIsWrong(uint32_t slot,
                                                              std::span<const std::byte> outputs) {
  ASSAY_CHECK(outputs.size() == plan().output_stride);
  const auto memory = SharedRegion::Create("assay-checked", std::max<size_t>(1, outputs.size()));
  if (!memory) return HostFailed(HostTrouble::Kind::kEnvironment, memory.error().message);
  std::memcpy(memory->data(), outputs.data(), outputs.size());
  const uint64_t args[] = {slot};
  auto reply = host_->Request(wire::FrameKind::kCheck, args, options_.timeout_s, memory->fd());
  if (!reply) {
    using Kind = HostTrouble::Kind;
    const Kind kind = reply.error().kind;
    ended_by_check_ = kind == Kind::kDied || kind == Kind::kOutOfMemory || kind == Kind::kTimedOut;
    return TroubleOfCheck(std::move(reply).error(), options_.timeout_s);
  }
  if (reply->args[0] != 0) return std::nullopt;
  return host_->Message();
}

HostResult<std::optional<SelectedValues>> Oracle::AskWhatIsSelected(
    uint32_t slot, size_t output, std::span<const std::byte> indices) {
  const wire::ArgumentSpec& spec = OutputSpec(plan(), output);
  ASSAY_CHECK(indices.size() == spec.size_bytes);
  const size_t count = spec.size_bytes / wire::ElementBytes(spec.dtype);
  constexpr size_t kBytesOfEach = 3 * sizeof(double);
  const auto memory =
      SharedRegion::Create("assay-indices", std::max<size_t>(1, kBytesOfEach * count));
  if (!memory) return HostFailed(HostTrouble::Kind::kEnvironment, memory.error().message);
  std::memcpy(memory->data(), indices.data(), indices.size());
  const uint64_t args[] = {slot, output};
  auto reply = host_->Request(wire::FrameKind::kSelect, args, options_.timeout_s, memory->fd());
  if (!reply) return std::unexpected(reply.error());
  if (reply->args[0] == 0) return std::nullopt;
  return ReadReply(*reply, memory->data(), count);
}

}  // namespace assay
