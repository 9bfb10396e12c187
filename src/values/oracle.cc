#include "values/oracle.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/check.h"
#include "base/defences.h"
#include "base/trace.h"
#include "hosts/device_access.h"
#include "machine/machine.h"
#include "rules/elements.h"
#include "rules/error_bounds.h"
#include "values/slot_layout.h"
#include "values/work_account.h"

namespace assay {

using wire::FrameKind;
using wire::Region;

namespace {

// Memory is taken once it is touched; of a device it is taken whole (values/memory_plan.h).
constexpr uint32_t kSlotsMax = 8192;
constexpr uint32_t kOracleSlotsMax = 64;
// Inputs and outputs of more than this part of the memory are evaluated in float64 by pieces
// (host/python/assay_host/pieces.py).
constexpr uint64_t kFloat64Share = 16;

}  // namespace

Result<Oracle> Oracle::Open(OracleOptions options, std::optional<wire::Failure>* refusal) {
  ASSAY_ASSIGN_OR_RETURN(std::shared_ptr<Host> host, StartOracleHost(options));
  return Open(std::move(options), std::move(host), refusal);
}

Result<Oracle> Oracle::OpenOther(OracleOptions options, std::shared_ptr<Host> host) {
  Oracle oracle;
  oracle.float64_whole_bytes_ = options.memory_bytes / kFloat64Share;
  oracle.options_ = std::move(options);
  oracle.options_.memory_bytes /= 8;  // most is for the size that is timed
  oracle.host_ = std::move(host);
  oracle.other_ = true;
  ASSAY_RETURN_IF_ERROR(oracle.Load(nullptr));
  ASSAY_RETURN_IF_ERROR(oracle.ShareSlots());
  return oracle;
}

Result<Oracle> Oracle::Open(OracleOptions options, std::shared_ptr<Host> host,
                            std::optional<wire::Failure>* refusal) {
  ASSAY_ASSIGN_OR_RETURN(ProblemEstimate estimate, EstimateProblem(*host, options));
  return Open(std::move(options), std::move(host), std::move(estimate), refusal);
}

Result<Oracle> Oracle::Open(OracleOptions options, std::shared_ptr<Host> host,
                            ProblemEstimate estimate, std::optional<wire::Failure>* refusal) {
  const Span span("open the oracle");
  Oracle oracle;
  oracle.float64_whole_bytes_ = options.memory_bytes / kFloat64Share;
  oracle.options_ = std::move(options);
  oracle.host_ = std::move(host);
  oracle.account_ = std::move(estimate.account);
  ASSAY_RETURN_IF_ERROR(oracle.Load(refusal));
  ASSAY_RETURN_IF_ERROR(oracle.ShareSlots());
  return oracle;
}

Result<void> Oracle::Load(std::optional<wire::Failure>* refusal) {
  ASSAY_ASSIGN_OR_RETURN(const SharedRegion pickle,
                         SharedRegion::Create("assay-init", kInitArgumentsMax));
  // Other constants travel in the memory that the record comes back in.
  const std::string constants = other_ ? nlohmann::json(options_.problem.set).dump() : "";
  if (constants.size() > kInitArgumentsMax) return UsageError("too many constants are set");
  if (other_) std::memcpy(pickle.data(), constants.data(), constants.size());
  const uint64_t wholly[] = {0, constants.size(), float64_whole_bytes_};
  auto reply = host_->Request(FrameKind::kLoad, wholly, options_.timeout_s, pickle.fd());
  if (!reply) {
    if (refusal != nullptr && reply.error().kind == HostTrouble::Kind::kFailed)
      *refusal = reply.error().failure;
    return std::unexpected(OracleError(reply.error()));
  }
  load_ = host_->loads();
  const wire::Report& report = host_->report();
  const uint64_t count = reply->args[0];
  if (count > wire::kArgumentsMax)
    return EnvironmentError("the reference host described too many arguments");
  description_.arguments.assign(report.arguments, report.arguments + count);
  description_.float64_supported = (reply->args[1] & 2) != 0;
  description_.changes_state = (reply->args[1] & 4) != 0;
  randomised_weights_ = (reply->args[1] & 8) != 0;
  description_.own_check = (reply->args[1] & 16) != 0;
  description_.same_values = (reply->args[1] & 32) != 0;
  description_.own_values = (reply->args[1] & 64) != 0;
  description_.asks_for_nan = (reply->args[1] & 128) != 0;
  description_.float64_pieces = reply->args[2];
  many_answers_ = description_.own_check ? 0 : reply->args[1] >> 8;
  description_.layouts = host_->Message();
  if (!std::all_of(description_.arguments.begin(), description_.arguments.end(), IsSound) ||
      !TwinsAreSound(description_.arguments))
    return EnvironmentError("the reference host described an argument that cannot be");
  if (reply->args[3] <= kInitArgumentsMax) {
    const std::string_view memory(reinterpret_cast<const char*>(pickle.data()), kInitArgumentsMax);
    init_arguments_ = memory.substr(0, reply->args[3]);
    constants_ = ReadConstants(memory.substr(reply->args[3]));
  }
  return {};
}

std::string Oracle::AdviceOnManyAnswers() const {
  constexpr std::string_view kReady[] = {"eigh", "svd", "qr"};
  if (many_answers_ == 0) return {};
  if (many_answers_ > std::size(kReady))
    return "its forward calls a factorisation, whose answer is not unique: write a check(inputs, "
           "outputs) into the problem's file (docs/problems.md)";
  return fmt::format(
      "the answer of {0} is not unique, by signs and order: the line `check = \"{0}\"` in the "
      "problem's file accepts each that is right (docs/problems.md)",
      kReady[many_answers_ - 1]);
}

Result<void> Oracle::ShareSlots() {
  ASSAY_ASSIGN_OR_RETURN(plan_, SharedRegion::Create("assay-plan", sizeof(wire::Plan)));
  auto& plan = *plan_.as<wire::Plan>();
  {
    auto laid = LayOutSlots(description_);
    if (!laid) return std::unexpected(laid.error());
    plan = *laid;
  }
  const uint32_t most = options_.slots_most > 0 ? options_.slots_most : kSlotsMax;
  if (on_device()) {
    const MemoryPlan shared = MemoryShared();
    slots_max_ = std::min(most, shared.masters);
    oracle_slots_max_ = std::min(slots_max_, shared.with_truth);
  } else {
    const uint64_t slot_bytes = plan.input_stride + plan.output_stride;
    slots_max_ = static_cast<uint32_t>(
        std::clamp<uint64_t>(options_.memory_bytes / 2 / slot_bytes, 2, most));
    oracle_slots_max_ = std::min({kOracleSlotsMax, slots_max_,
                                  static_cast<uint32_t>(std::max<uint64_t>(
                                      1, options_.memory_bytes / 4 / plan.oracle_stride))});
  }
  plan.slot_count = slots_max_;
  ASSAY_ASSIGN_OR_RETURN(inputs_,
                         SharedRegion::Create("assay-masters", slots_max_ * plan.input_stride));
  if (!on_device()) {
    ASSAY_ASSIGN_OR_RETURN(weights_, SharedRegion::Create("assay-weights", WeightsBytes(plan, 1)));
    ASSAY_ASSIGN_OR_RETURN(outputs_,
                           SharedRegion::Create("assay-expected", slots_max_ * plan.output_stride));
    ASSAY_ASSIGN_OR_RETURN(
        oracle_, SharedRegion::Create("assay-float64", oracle_slots_max_ * plan.oracle_stride));
  }
  const struct {
    Region region;
    const SharedRegion& memory;
    bool writable;
  } regions[] = {{Region::kPlan, plan_, false},
                 {on_device() ? Region::kNumbers : Region::kInputs, inputs_, true},
                 {Region::kOutputs, outputs_, true},
                 {Region::kOracle, oracle_, true},
                 {Region::kWeights, weights_, true}};
  for (const auto& [region, memory, writable] : regions)
    if (memory.size_bytes() > 0)
      if (auto done = host_->Attach(region, memory, writable); !done)
        return std::unexpected(OracleError(done.error()));
  if (on_device()) ASSAY_RETURN_IF_ERROR(ShareMastersOnDevice());
  return StoreWeights();
}

CallBytes Oracle::BytesOfCall() const {
  return {plan().input_stride, plan().weights_stride, plan().output_stride, plan().oracle_stride,
          static_cast<uint64_t>(account_.peak_bytes)};
}

MemoryPlan Oracle::MemoryShared() const { return PlanMemory(BytesOfCall(), memory_bytes()); }

bool Oracle::FitsBarely() const { return memory_bytes() < LeastBytes(BytesOfCall()) / 8 * 9; }

Result<void> Oracle::StoreWeights() {
  const uint64_t store[] = {0};
  if (auto done = host_->Request(FrameKind::kStoreWeights, store, options_.timeout_s); !done)
    return std::unexpected(OracleError(done.error()));
  std::vector<std::byte> constructed(plan().weights_stride);
  if (!on_device())
    std::copy_n(weights_.data(), constructed.size(), constructed.data());
  else if (!constructed.empty())
    ASSAY_RETURN_IF_ERROR(KeepConstructed(&constructed));
  varied_ = std::make_shared<VariedWeights>(plan(), std::move(constructed));
  if (!varied_->any_vary()) return {};
  ASSAY_ASSIGN_OR_RETURN(const Reach reach, ReachOfVersions());
  if (reach == Reach::kCareful)
    varied_ = std::make_shared<VariedWeights>(plan(), varied_->constructed(), reach);
  return {};
}

Result<Reach> Oracle::ReachOfVersions() {
  ASSAY_ASSIGN_OR_RETURN(const auto constructed, NonFiniteWith(0));
  Reach reach = Reach::kDrawn;
  // A reference that fails with its own weights is refused later, with its words.
  for (uint64_t version = 1; constructed && reach == Reach::kDrawn && version <= 2; ++version) {
    ASSAY_ASSIGN_OR_RETURN(const auto drawn, NonFiniteWith(version));
    if (!drawn || *drawn > *constructed) reach = Reach::kCareful;
  }
  if (auto shown = ShowWeights(0); !shown) return std::unexpected(OracleError(shown.error()));
  return reach;
}

Result<std::optional<uint64_t>> Oracle::NonFiniteWith(uint64_t version) {
  auto filled = ShowWeights(version);
  if (filled) filled = FillSlots(0, 1, options_.weights_seed, false);
  if (!filled && filled.error().kind == HostTrouble::Kind::kFailed) return std::nullopt;
  if (!filled) return std::unexpected(OracleError(filled.error()));
  const uint64_t count[] = {0, 2};
  const auto counted = host_->Request(FrameKind::kEvaluate, count, options_.timeout_s);
  if (!counted) return std::unexpected(OracleError(counted.error()));
  return counted->args[0];
}

Result<void> Oracle::KeepConstructed(std::vector<std::byte>* constructed) {
  const Gpu& gpu = options_.device->gpu();
  ASSAY_ASSIGN_OR_RETURN(device_constructed_, DeviceRegion::Private(gpu, constructed->size()));
  ASSAY_RETURN_IF_ERROR(
      gpu.CopyToHost(constructed->data(), device_weights_.address(), constructed->size()));
  ASSAY_RETURN_IF_ERROR(
      gpu.Check(gpu.driver().copy_to_device(device_constructed_.address(), constructed->data(),
                                            constructed->size(), nullptr),
                "copy to the GPU"));
  return gpu.Synchronize();
}

Result<void> Oracle::ShareMastersOnDevice() {
  const Gpu& gpu = options_.device->gpu();
  ASSAY_ASSIGN_OR_RETURN(device_inputs_,
                         DeviceRegion::Shared(gpu, slots_max_ * plan().input_stride));
  ASSAY_ASSIGN_OR_RETURN(device_outputs_,
                         DeviceRegion::Shared(gpu, slots_max_ * plan().output_stride));
  ASSAY_ASSIGN_OR_RETURN(device_oracle_,
                         DeviceRegion::Shared(gpu, oracle_slots_max_ * plan().oracle_stride));
  ASSAY_ASSIGN_OR_RETURN(device_weights_, DeviceRegion::Shared(gpu, WeightsBytes(plan(), 1)));
  const struct {
    Region region;
    const DeviceRegion& memory;
  } regions[] = {{Region::kInputs, device_inputs_},
                 {Region::kOutputs, device_outputs_},
                 {Region::kOracle, device_oracle_},
                 {Region::kWeights, device_weights_}};
  for (const auto& [region, memory] : regions)
    if (auto done = host_->AttachDevice(region, memory.fd(), memory.size_bytes()); !done)
      return std::unexpected(OracleError(done.error()));
  return {};
}

const std::byte* Oracle::Fetch(Fetched* fetched, uint32_t slot, cuda::Pointer from,
                               uint64_t size_bytes) const {
  if (fetched->fill != 0 && fetched->fill == fill_number(slot)) return fetched->content.data();
  fetched->content.assign(size_bytes, std::byte{0});
  fetched->fill = fill_number(slot);
  auto done = options_.device->gpu().CopyToHost(fetched->content.data(), from, size_bytes);
  if (!done) device_error_ = std::move(done).error();
  return fetched->content.data();
}

const std::byte* Oracle::inputs(uint32_t slot) const {
  if (!on_device()) return numbers(slot);
  const bool known = fetched_inputs_.fill != 0 && fetched_inputs_.fill == fill_number(slot);
  const std::byte* content =
      Fetch(&fetched_inputs_, slot, device_inputs(slot), plan().input_stride);
  if (known) return content;
  ForEachNumber(plan(), [&](const wire::ArgumentSpec& number) {
    std::memcpy(fetched_inputs_.content.data() + number.offset, numbers(slot) + number.offset,
                number.size_bytes);
  });
  return content;
}

const std::byte* Oracle::outputs(uint32_t slot) const {
  if (!on_device()) return outputs_.data() + uint64_t{slot} * plan().output_stride;
  return Fetch(&fetched_outputs_, slot, device_outputs(slot), plan().output_stride);
}

const std::byte* Oracle::oracle(uint32_t slot) const {
  if (!on_device()) return oracle_.data() + uint64_t{slot} * plan().oracle_stride;
  return Fetch(&fetched_oracle_, slot, device_oracle(slot), plan().oracle_stride);
}

void Oracle::Read(Region region, uint32_t slot, uint64_t offset,
                  std::span<std::byte> target) const {
  if (target.empty()) return;
  const bool of_inputs = region == Region::kInputs, of_truth = region == Region::kOracle;
  if (!on_device()) {
    const std::byte* whole = of_inputs ? inputs(slot) : of_truth ? oracle(slot) : outputs(slot);
    std::memcpy(target.data(), whole + offset, target.size());
    return;
  }
  const cuda::Pointer whole = of_inputs  ? device_inputs(slot)
                              : of_truth ? device_oracle(slot)
                                         : device_outputs(slot);
  auto done = options_.device->gpu().CopyToHost(target.data(), whole + offset, target.size());
  if (!done) device_error_ = std::move(done).error();
}

std::optional<JudgeKernels::Measured> Oracle::Measure(const wire::ArgumentSpec& output,
                                                      cuda::Pointer candidate,
                                                      uint32_t slot) const {
  const gpu::TruthComparison comparison = AgainstTruth(output, candidate, slot);
  auto measured = options_.device->kernels().CompareWithTruth({&comparison, 1});
  if (measured) return measured->front();
  device_error_ = std::move(measured).error();
  return std::nullopt;
}

gpu::TruthComparison Oracle::AgainstTruth(const wire::ArgumentSpec& output, cuda::Pointer candidate,
                                          uint32_t slot) const {
  gpu::TruthComparison comparison{};
  comparison.candidate = reinterpret_cast<const void*>(candidate);
  comparison.reference = reinterpret_cast<const void*>(device_outputs(slot) + output.offset);
  comparison.truth = reinterpret_cast<const double*>(device_oracle(slot) + output.oracle_offset);
  comparison.elements =
      static_cast<long long>(output.size_bytes / wire::ElementBytes(output.dtype));
  comparison.row_elements =
      RowElements({output.shape, output.shape + output.rank}, comparison.elements);
  comparison.row_scale_floor = kRowScaleFloor;
  comparison.type = DeviceType(output.dtype);
  return comparison;
}

HostResult<void> Oracle::ShowWeights(uint64_t version) {
  if (version == shown_version_ || !varied_->any_vary()) return {};
  shown_version_ = version;
  float64_weights_stale_ = true;
  if (!on_device()) {
    varied_->Write(version, false, weights_.data());
    return {};
  }
  const auto shown = ShowOnDevice(version);
  if (!shown) return HostFailed(HostTrouble::Kind::kEnvironment, shown.error().message);
  return {};
}

Result<void> Oracle::ShowOnDevice(uint64_t version) {
  if (version == 0) {
    const Gpu& gpu = options_.device->gpu();
    ASSAY_RETURN_IF_ERROR(gpu.Check(
        gpu.driver().copy_on_device(device_weights_.address(), device_constructed_.address(),
                                    plan().weights_stride, nullptr),
        "copy on the GPU"));
    return gpu.Synchronize();
  }
  std::vector<gpu::VariedTensor> tensors;
  PlaceVersion(*varied_, version, device_constructed_.address(), device_weights_.address(),
               &tensors);
  return options_.device->kernels().Vary(tensors);
}

HostResult<void> Oracle::BeginFill(uint32_t first, uint32_t count) {
  ASSAY_CHECK(first + count <= slots_max_);
  if (auto hold = CopiesHold(); !hold) return hold;
  fills_.resize(std::max<size_t>(fills_.size(), first + count));
  for (uint32_t slot = first; slot < first + count; ++slot)
    fills_[slot] = {++filled_, shown_version_, 0, wire::DrawKind::kOrdinary};
  return {};
}

HostResult<uint64_t> Oracle::Draw(uint32_t slot, uint64_t seed, wire::DrawKind kind,
                                  const Nudge& nudge) {
  if (auto begun = BeginFill(slot, 1); !begun) return std::unexpected(begun.error());
  fills_[slot].seed = seed;
  fills_[slot].kind = kind;
  const uint64_t args[] = {seed, static_cast<uint64_t>(kind), slot, nudge.seed,
                           static_cast<uint64_t>(nudge.bits)};
  auto drawn = host_->Request(FrameKind::kDraw, args, options_.timeout_s);
  if (!drawn) return std::unexpected(drawn.error());
  if (kind == wire::DrawKind::kSigns) kept_signs_ = drawn->args[1];
  return drawn->args[0];
}

HostResult<uint64_t> Oracle::Fill(uint32_t slot, uint64_t seed, wire::DrawKind kind, bool float64) {
  const auto changed = Draw(slot, seed, kind, {});
  if (!changed) return changed;
  const uint64_t native[] = {slot, 0};
  if (auto done = host_->Request(FrameKind::kEvaluate, native, options_.timeout_s); !done)
    return std::unexpected(done.error());
  if (!float64 || !description_.float64_supported) return changed;
  auto done = EvaluateInFloat64(slot);
  if (done) return changed;
  if (done.error().kind != HostTrouble::Kind::kFailed ||
      done.error().failure != wire::Failure::kFloat64Unsupported)
    return std::unexpected(done.error());
  description_.float64_supported = false;
  return changed;
}

HostResult<void> Oracle::EvaluateInFloat64(uint32_t slot) {
  ASSAY_CHECK(slot < oracle_slots_max_);
  if (float64_weights_stale_) {
    const uint64_t changed_since[] = {2};
    if (auto done = host_->Request(FrameKind::kStoreWeights, changed_since, options_.timeout_s);
        !done)
      return std::unexpected(done.error());
    float64_weights_stale_ = false;
  }
  const uint64_t double_precision[] = {slot, 1};
  auto done = host_->Request(FrameKind::kEvaluate, double_precision, options_.timeout_s);
  if (!done) return std::unexpected(done.error());
  return {};
}

HostResult<void> Oracle::FillNudged(uint32_t slot, uint64_t seed, wire::DrawKind kind,
                                    const Nudge& nudge) {
  ASSAY_CHECK(nudge.seed != 0 && description_.float64_supported);
  if (auto drawn = Draw(slot, seed, kind, nudge); !drawn) return std::unexpected(drawn.error());
  return EvaluateInFloat64(slot);
}

bool Oracle::KnowsMoved(uint32_t slot) const {
  const auto found = moved_.find(slot);
  return found != moved_.end() && found->second.fill == fill_number(slot);
}

std::span<const MovedElement> Oracle::moved(uint32_t slot, size_t output) const {
  if (!KnowsMoved(slot)) return {};
  return moved_.at(slot).elements.at(output);
}

void Oracle::SetMoved(uint32_t slot, std::vector<std::vector<MovedElement>> moved) {
  moved_[slot] = {fill_number(slot), std::move(moved)};
}

HostResult<void> Oracle::CopiesHold() const {
  if (device_error_) return HostFailed(HostTrouble::Kind::kEnvironment, device_error_->message);
  return {};
}

HostResult<void> Oracle::FillOrdinary(uint32_t first, uint32_t count, uint64_t seed,
                                      bool with_signs) {
  if (!varied_->any_vary()) return FillSlots(first, count, seed, with_signs);
  for (uint32_t i = 0; i < count; ++i) {
    // Never version 0, which hosts see as they load.
    if (auto shown = ShowWeights((seed + i) << 1 | 1); !shown) return shown;
    if (auto filled = FillSlots(first + i, 1, seed + i, with_signs); !filled) return filled;
  }
  return {};
}

HostResult<void> Oracle::FillSlots(uint32_t first, uint32_t count, uint64_t seed, bool with_signs) {
  if (auto begun = BeginFill(first, count); !begun) return begun;
  for (uint32_t i = 0; i < count; ++i) {
    Filled& filled = fills_[first + i];
    filled.seed = seed + i;
    // The host's rule (fills.py).
    filled.kind =
        with_signs && (filled.seed & 1) != 0 ? wire::DrawKind::kSigns : wire::DrawKind::kOrdinary;
  }
  const uint64_t args[] = {seed, first, count, with_signs ? uint64_t{1} : uint64_t{0}};
  auto done = host_->Request(FrameKind::kFill, args, options_.timeout_s * count);
  if (!done) return std::unexpected(done.error());
  return {};
}

std::string Oracle::SetForShare(double share) {
  return assay::SetForShare(*host_, share, options_.timeout_s);
}

HostResult<std::string> Oracle::ListMutants(uint32_t slot, Mutants which) {
  auto reply = RequestText(*host_, FrameKind::kMutants, slot, 0, options_.timeout_s,
                           static_cast<uint64_t>(which));
  if (!reply) return std::unexpected(reply.error());
  return std::move(reply->text);
}

HostResult<Oracle::Mutation> Oracle::Mutate(uint64_t mutant, uint32_t slot, uint32_t target) {
  ASSAY_CHECK(slot < slots_max_ && target < slots_max_ && slot != target);
  for (uint32_t i = 0; i < plan().argument_count; ++i) {
    const wire::ArgumentSpec& argument = plan().arguments[i];
    if (argument.role != wire::Role::kOutput) continue;
    std::memset(outputs_.data() + uint64_t{target} * plan().output_stride + argument.offset,
                static_cast<int>(PoisonByte(argument.dtype)), argument.size_bytes);
  }
  const uint64_t args[] = {mutant, slot, target};
  auto done = host_->Request(FrameKind::kMutate, args, options_.timeout_s);
  if (!done) return std::unexpected(done.error());
  return Mutation{done->args[0] != 0, done->args[1] != 0};
}

}  // namespace assay
