#include "correctness/impostors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "base/defences.h"
#include "base/trace.h"
#include "correctness/call_check.h"

namespace assay {

using wire::ArgumentSpec;
using wire::Role;

namespace {

// Elements of a tensor that impostors are tried on, at most: its first ones. What computes nothing
// is wrong there, too, and whole outputs of some gigabytes would be fetched from a device.
constexpr int64_t kElementsTried = 1 << 18;

int64_t Elements(const ArgumentSpec& argument) {
  return static_cast<int64_t>(argument.size_bytes / wire::ElementBytes(argument.dtype));
}

// The first elements of an output, in whole rows where one fits, in place of the output.
OutputView FirstElements(const ArgumentSpec& output) {
  OutputView view = ViewOf(output);
  int64_t row = 1;  // elements that one index of the dimension before has
  size_t dim = view.shape.size();
  while (dim > 0 && row * view.shape[dim - 1] <= kElementsTried) row *= view.shape[--dim];
  if (dim == 0) return view;
  view.shape.erase(view.shape.begin(), view.shape.begin() + static_cast<std::ptrdiff_t>(dim) - 1);
  view.shape.front() = kElementsTried / row;
  view.count = view.shape.front() * row;
  return view;
}

bool IsFloatingTensor(const ArgumentSpec& argument, Role role) {
  return argument.role == role && argument.kind == wire::Kind::kTensor &&
         IsFloatingPoint(argument.dtype) && argument.size_bytes > 0;
}

bool SameShape(const ArgumentSpec& a, const ArgumentSpec& b) {
  return a.rank == b.rank && std::equal(a.shape, a.shape + a.rank, b.shape);
}

}  // namespace

Impostors::Impostors(const wire::Plan& plan, bool wholly)
    : arguments_(plan.arguments, plan.arguments + plan.argument_count) {
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const ArgumentSpec& output = arguments_[i];
    if (output.role != Role::kOutput) continue;
    tried_.push_back({i, wholly ? ViewOf(output) : FirstElements(output), {}, {}});
    whole_ = whole_ && tried_.back().view.count == Elements(output);
    unchanged_passes_ =
        unchanged_passes_ || (wire::IsChangedInput(output) && output.used_bytes > 0);
  }
}

void Impostors::ReadDraw(const Oracle& oracle, uint32_t master) {
  const bool has_truth = oracle.description().float64_supported && !oracle.description().own_check;
  for (Tried& tried : tried_) {
    const ArgumentSpec& output = arguments_[tried.output];
    const auto count = static_cast<uint64_t>(tried.view.count);
    tried.expected.resize(count * wire::ElementBytes(output.dtype));
    oracle.Read(wire::Region::kOutputs, master, output.offset, tried.expected);
    tried.view.reference = tried.view.candidate = tried.expected.data();
    if (!has_truth || !IsFloatingPoint(output.dtype)) continue;
    tried.truth.resize(count);
    oracle.Read(wire::Region::kOracle, master, output.oracle_offset,
                std::as_writable_bytes(std::span(tried.truth)));
    tried.view.oracle = tried.truth.data();
  }
}

HostResult<void> Impostors::Try(Oracle& oracle, const Draw& draw, const CompareRule& rule,
                                std::span<const ReferenceError> errors) {
  if (draw.kind == wire::DrawKind::kSpecialValues && !rule.special_values) return {};
  const uint32_t master = draw.master;
  const Span span("try impostors");
  ReadDraw(oracle, master);
  if (!constant_.none_left()) {
    std::vector<OutputView> views;
    for (const Tried& tried : tried_) views.push_back(tried.view);
    constant_.Add(views);
  }
  const Trial trial{oracle, master, rule, errors};
  std::vector<Bytes> zeros;
  for (const Tried& tried : tried_) zeros.emplace_back(tried.expected.size());
  zeros_pass_ = zeros_pass_ && Pass(trial, zeros);
  if (first_.empty()) {
    first_ = Expected();
    FindCopies(trial);
  } else {
    first_passes_ = first_passes_ && Pass(trial, first_);
    ++others_;
  }
  TryCopies(trial);
  // A NaN that comes into a changed input shows, however small the change.
  if (unchanged_passes_ && draw.kind != wire::DrawKind::kSpecialValues)
    unchanged_passes_ = Pass(trial, WithUnchanged(trial));
  if (auto read = oracle.CopiesHold(); !read) return read;
  if (trouble_) return std::unexpected(*trouble_);
  return {};
}

std::vector<Impostors::Bytes> Impostors::Expected() const {
  std::vector<Bytes> outputs;
  for (const Tried& tried : tried_) outputs.push_back(tried.expected);
  return outputs;
}

std::vector<Impostors::Bytes> Impostors::WithUnchanged(const Trial& trial) const {
  std::vector<Bytes> outputs = Expected();
  for (size_t i = 0; i < tried_.size(); ++i)
    if (const ArgumentSpec& output = arguments_[tried_[i].output]; wire::IsChangedInput(output))
      trial.oracle.Read(wire::Region::kInputs, trial.master, arguments_[output.twin - 1].offset,
                        outputs[i]);
  return outputs;
}

std::string Impostors::Finding() const {
  if (!Stands(Defence::kDegenerate) || first_.empty()) return {};
  if (zeros_pass_) return "all zeros pass gate 1";
  if (first_passes_ && others_ > 0) return "the output of one draw passes for every other";
  if (unchanged_passes_)
    return "forward changes its inputs by less than gate 1 sees: leaving them as they are passes";
  return FindingOfCopies();
}

// A problem that asks for no more than the copy is right to accept it.
std::string Impostors::FindingOfCopies() const {
  for (const Copy& copy : copies_) {
    if (copy.is_the_truth) continue;
    const std::string input = arguments_[copy.input].name,
                      output = arguments_[tried_[copy.output].output].name;
    const std::string what = copy.factor == 1 ? fmt::format("a copy of {}", input)
                                              : fmt::format("{:.6g} times {}", copy.factor, input);
    return fmt::format("{} passes for {}", what, output);
  }
  return {};
}

bool Impostors::Pass(const Trial& trial, const std::vector<Bytes>& outputs) {
  if (trouble_) return false;
  // The problem's own check, and choices among equals, ask for outputs whole.
  if (whole_) return PassWhole(trial, outputs);
  for (size_t i = 0; i < tried_.size(); ++i) {
    OutputView view = tried_[i].view;
    view.candidate = outputs[i].data();
    view.ordinary_scale = trial.errors[i].root_mean_square;
    CompareRule rule = trial.rule;
    if (!IsFloatingPoint(view.dtype)) rule.required = PrecisionClass::kExact;
    const OutputComparison compared = view.oracle != nullptr
                                          ? CompareWithOracle(view, rule, nullptr)
                                          : CompareWithReference(view, rule, trial.errors[i]);
    if (!compared.passed) return false;
  }
  return true;
}

bool Impostors::PassWhole(const Trial& trial, const std::vector<Bytes>& outputs) {
  const std::byte* expected = trial.oracle.outputs(trial.master);
  Bytes written(expected, expected + trial.oracle.plan().output_stride);
  for (size_t i = 0; i < tried_.size(); ++i)
    std::copy(outputs[i].begin(), outputs[i].end(),
              written.begin() + static_cast<std::ptrdiff_t>(arguments_[tried_[i].output].offset));
  CallCheck check =
      CheckWithoutHint(trial.oracle, written.data(), trial.master, true, trial.rule, trial.errors);
  trouble_ = std::move(check.trouble);
  return check.passed;
}

CopyView Impostors::ViewOfCopy(const Trial& trial, const Tried& tried, size_t input,
                               Bytes* given) const {
  const ArgumentSpec& of = arguments_[input];
  given->resize(static_cast<size_t>(tried.view.count) * wire::ElementBytes(of.dtype));
  trial.oracle.Read(wire::Region::kInputs, trial.master, of.offset, *given);
  return {tried.view.dtype, tried.expected.data(), tried.view.oracle,
          of.dtype,         given->data(),         tried.view.count};
}

// Of changed inputs and the outputs that they become, the test of unchanged inputs speaks.
void Impostors::FindCopies(const Trial& trial) {
  for (size_t output = 0; output < tried_.size(); ++output)
    for (size_t input = 0; input < arguments_.size(); ++input) {
      const ArgumentSpec& given = arguments_[input];
      const ArgumentSpec& result = arguments_[tried_[output].output];
      if (!IsFloatingTensor(result, Role::kOutput) || !IsFloatingTensor(given, Role::kInput) ||
          !SameShape(result, given) || result.twin != 0)
        continue;
      Bytes read;
      const auto factor = NearestFactor(ViewOfCopy(trial, tried_[output], input, &read));
      if (!factor) continue;
      copies_.push_back({output, input, 1});
      if (*factor != 1) copies_.push_back({output, input, *factor});
    }
}

void Impostors::TryCopies(const Trial& trial) {
  std::erase_if(copies_, [&](Copy& copy) {
    Bytes read;
    const CopyView view = ViewOfCopy(trial, tried_[copy.output], copy.input, &read);
    std::vector<Bytes> outputs = Expected();
    outputs[copy.output] = ScaledCopy(view, copy.factor);
    if (!Pass(trial, outputs)) return true;
    copy.is_the_truth = copy.is_the_truth && IsScaledCopy(view, copy.factor);
    return false;
  });
}

}  // namespace assay
