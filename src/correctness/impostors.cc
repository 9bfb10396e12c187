#include "correctness/impostors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/defences.h"
#include "base/trace.h"
#include "correctness/call_check.h"
#include "correctness/device_checks.h"
#include "values/slot_layout.h"

namespace assay {

using wire::ArgumentSpec;
using wire::Role;

namespace {

// Returns the expected outputs, but each changed input as it was before the call.
std::vector<std::byte> WithUnchanged(const Oracle& oracle, uint32_t master) {
  const std::byte* expected = oracle.outputs(master);
  std::vector<std::byte> outputs(expected, expected + oracle.plan().output_stride);
  LayChangedInputs(oracle.plan(), oracle.inputs(master), outputs.data());
  return outputs;
}

bool IsFloatingTensor(const ArgumentSpec& argument, Role role) {
  return argument.role == role && argument.kind == wire::Kind::kTensor &&
         IsFloatingPoint(argument.dtype) && argument.size_bytes > 0;
}

bool SameShape(const ArgumentSpec& a, const ArgumentSpec& b) {
  return a.rank == b.rank && std::equal(a.shape, a.shape + a.rank, b.shape);
}

CopyView ViewOfCopy(const Oracle& oracle, uint32_t master, const ArgumentSpec& output,
                    const ArgumentSpec& input) {
  CopyView view;
  view.output_dtype = output.dtype;
  view.output = oracle.outputs(master) + output.offset;
  if (oracle.description().float64_supported && !oracle.description().own_check)
    view.truth = reinterpret_cast<const double*>(oracle.oracle(master) + output.oracle_offset);
  view.input_dtype = input.dtype;
  view.input = oracle.inputs(master) + input.offset;
  view.count = static_cast<int64_t>(output.size_bytes / wire::ElementBytes(output.dtype));
  return view;
}

}  // namespace

Impostors::Impostors(const wire::Plan& plan)
    : arguments_(plan.arguments, plan.arguments + plan.argument_count), zeros_(plan.output_stride) {
  ForEachChangedInput(plan, [&](const ArgumentSpec& output) {
    unchanged_passes_ = unchanged_passes_ || output.used_bytes > 0;
  });
}

HostResult<void> Impostors::Try(Oracle& oracle, const Draw& draw, const CompareRule& rule,
                                std::span<const ReferenceError> errors) {
  if (draw.kind == wire::DrawKind::kSpecialValues && !rule.special_values) return {};
  const uint32_t master = draw.master;
  const Span span("try impostors");
  if (!constant_.none_left()) constant_.Add(OutputViews(oracle, master, nullptr, false));
  zeros_pass_ = zeros_pass_ && Pass(oracle, master, zeros_, rule, errors);
  if (first_.empty()) {
    const std::byte* outputs = oracle.outputs(master);
    first_.assign(outputs, outputs + oracle.plan().output_stride);
    FindCopies(oracle, master);
  } else {
    first_passes_ = first_passes_ && Pass(oracle, master, first_, rule, errors);
    ++others_;
  }
  TryCopies(oracle, master, rule, errors);
  // A NaN that comes into a changed input shows, however small the change.
  if (unchanged_passes_ && draw.kind != wire::DrawKind::kSpecialValues)
    unchanged_passes_ = Pass(oracle, master, WithUnchanged(oracle, master), rule, errors);
  if (trouble_) return std::unexpected(*trouble_);
  return {};
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
    const std::string input = arguments_[copy.input].name, output = arguments_[copy.output].name;
    const std::string what = copy.factor == 1 ? fmt::format("a copy of {}", input)
                                              : fmt::format("{:.6g} times {}", copy.factor, input);
    return fmt::format("{} passes for {}", what, output);
  }
  return {};
}

bool Impostors::Pass(Oracle& oracle, uint32_t master, const std::vector<std::byte>& outputs,
                     const CompareRule& rule, std::span<const ReferenceError> errors) {
  if (trouble_ || FailPlainly(oracle, outputs.data(), master, rule)) return false;
  CallCheck check = CheckWithoutHint(oracle, outputs.data(), master, true, rule, errors);
  trouble_ = std::move(check.trouble);
  return check.passed;
}

// Of changed inputs and the outputs that they become, the test of unchanged inputs speaks.
void Impostors::FindCopies(Oracle& oracle, uint32_t master) {
  for (size_t output = 0; output < arguments_.size(); ++output)
    for (size_t input = 0; input < arguments_.size(); ++input) {
      const ArgumentSpec& given = arguments_[input];
      const ArgumentSpec& result = arguments_[output];
      if (!IsFloatingTensor(result, Role::kOutput) || !IsFloatingTensor(given, Role::kInput) ||
          !SameShape(result, given) || result.twin != 0)
        continue;
      const auto factor = NearestFactor(ViewOfCopy(oracle, master, result, given));
      if (!factor) continue;
      copies_.push_back({output, input, 1});
      if (*factor != 1) copies_.push_back({output, input, *factor});
    }
}

void Impostors::TryCopies(Oracle& oracle, uint32_t master, const CompareRule& rule,
                          std::span<const ReferenceError> errors) {
  std::erase_if(copies_, [&](Copy& copy) {
    const ArgumentSpec& output = arguments_[copy.output];
    const CopyView view = ViewOfCopy(oracle, master, output, arguments_[copy.input]);
    const std::byte* expected = oracle.outputs(master);
    std::vector<std::byte> outputs(expected, expected + oracle.plan().output_stride);
    const std::vector<std::byte> written = ScaledCopy(view, copy.factor);
    std::memcpy(outputs.data() + output.offset, written.data(), written.size());
    if (!Pass(oracle, master, outputs, rule, errors)) return true;
    copy.is_the_truth = copy.is_the_truth && IsScaledCopy(view, copy.factor);
    return false;
  });
}

}  // namespace assay
