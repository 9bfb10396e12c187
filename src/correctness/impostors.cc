#include "correctness/impostors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
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

// Elements of an output that impostors are tried on first, at most: what computes nothing is wrong
// there, too, and whole outputs of some gigabytes would be fetched from a device.
constexpr int64_t kElementsTried = 3 << 16;
// The first draw's outputs are kept whole up to this size, and not tried beyond it.
constexpr uint64_t kFirstBytesMax = uint64_t{256} << 20;

int64_t Elements(const ArgumentSpec& argument) {
  return static_cast<int64_t>(argument.size_bytes / wire::ElementBytes(argument.dtype));
}

bool IsFloatingTensor(const ArgumentSpec& argument, Role role) {
  return argument.role == role && argument.kind == wire::Kind::kTensor &&
         IsFloatingPoint(argument.dtype) && argument.size_bytes > 0;
}

bool SameShape(const ArgumentSpec& a, const ArgumentSpec& b) {
  return a.rank == b.rank && std::equal(a.shape, a.shape + a.rank, b.shape);
}

}  // namespace

// Rows from the start, the middle and the end of an output, in its place.
Impostors::Tried Impostors::Some(size_t number, const ArgumentSpec& output) {
  Tried tried{number, ViewOf(output), {}, {}, {}};
  OutputView& view = tried.view;
  int64_t row = 1;  // elements
  size_t dim = view.shape.size();
  while (dim > 0 && row * view.shape[dim - 1] <= kElementsTried) row *= view.shape[--dim];
  if (dim == 0) {
    tried.ranges = {{0, view.count}};
    return tried;
  }
  const int64_t rows = view.count / row, part = std::max<int64_t>(1, kElementsTried / row / 3);
  for (const int64_t first : {int64_t{0}, (rows - part) / 2, rows - part})
    tried.ranges.push_back({first * row, part * row});
  view.shape.erase(view.shape.begin(), view.shape.begin() + static_cast<std::ptrdiff_t>(dim) - 1);
  view.shape.front() = 3 * part;
  view.count = 3 * part * row;
  return tried;
}

Impostors::Impostors(const wire::Plan& plan, bool wholly)
    : arguments_(plan.arguments, plan.arguments + plan.argument_count) {
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const ArgumentSpec& output = arguments_[i];
    if (output.role != Role::kOutput) continue;
    tried_.push_back(wholly ? Tried{i, ViewOf(output), {{0, Elements(output)}}, {}, {}}
                            : Some(i, output));
    whole_ = whole_ && tried_.back().view.count == Elements(output);
    unchanged_passes_ =
        unchanged_passes_ || (wire::IsChangedInput(output) && output.used_bytes > 0);
  }
}

Impostors::Bytes Impostors::Read(const Oracle& oracle, wire::Region region, uint32_t master,
                                 const Tried& tried, const Place& place) {
  Bytes bytes(static_cast<uint64_t>(tried.view.count) * place.element_bytes);
  uint64_t at = 0;
  for (const Range& range : tried.ranges) {
    const uint64_t size_bytes = static_cast<uint64_t>(range.count) * place.element_bytes;
    oracle.Read(region, master,
                place.offset + static_cast<uint64_t>(range.first) * place.element_bytes,
                std::span(bytes).subspan(at, size_bytes));
    at += size_bytes;
  }
  return bytes;
}

Impostors::Bytes Impostors::ReadInput(const Trial& trial, const Tried& tried, size_t input) const {
  const ArgumentSpec& of = arguments_[input];
  return Read(trial.oracle, wire::Region::kInputs, trial.master, tried,
              {of.offset, wire::ElementBytes(of.dtype)});
}

void Impostors::ReadDraw(const Oracle& oracle, uint32_t master) {
  const bool has_truth = oracle.description().float64_supported && !oracle.description().own_check;
  for (Tried& tried : tried_) {
    const ArgumentSpec& output = arguments_[tried.output];
    tried.expected = Read(oracle, wire::Region::kOutputs, master, tried,
                          {output.offset, wire::ElementBytes(output.dtype)});
    tried.view.reference = tried.view.candidate = tried.expected.data();
    if (!has_truth || !IsFloatingPoint(output.dtype)) continue;
    const Bytes truth =
        Read(oracle, wire::Region::kOracle, master, tried, {output.oracle_offset, sizeof(double)});
    tried.truth.resize(truth.size() / sizeof(double));
    std::memcpy(tried.truth.data(), truth.data(), truth.size());
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
  if (first_.empty()) {
    first_ = Expected();
    first_passes_ = oracle.plan().output_stride <= kFirstBytesMax;
    if (first_passes_ && !whole_) first_whole_ = WholeExpected(trial);
    FindCopies(trial);
  } else {
    ++others_;
  }
  return TryEach(trial, draw.kind);
}

HostResult<void> Impostors::Confirm(Oracle& oracle, const Draw& draw, const CompareRule& rule,
                                    std::span<const ReferenceError> errors) {
  const Span span("try impostors whole");
  confirms_ = true;
  ReadDraw(oracle, draw.master);
  return TryEach({oracle, draw.master, rule, errors}, draw.kind);
}

bool Impostors::MustConfirm() const {
  const bool first = first_passes_ && others_ > 0;
  return !whole_ && !first_.empty() &&
         (zeros_pass_ || first || unchanged_passes_ || !FindingOfCopies().empty());
}

HostResult<void> Impostors::TryEach(const Trial& trial, wire::DrawKind kind) {
  Oracle& oracle = trial.oracle;
  const wire::Plan& plan = oracle.plan();
  std::vector<Bytes> zeros;
  for (const Tried& tried : tried_) zeros.emplace_back(tried.expected.size());
  zeros_pass_ = zeros_pass_ && Pass(trial, zeros, [&] { return Bytes(plan.output_stride); });
  if (others_ > 0)
    first_passes_ = first_passes_ && Pass(trial, first_, [&] { return first_whole_; });
  TryCopies(trial);
  // A NaN that comes into a changed input shows, however small the change.
  if (unchanged_passes_ && kind != wire::DrawKind::kSpecialValues)
    unchanged_passes_ = !InputsFailPlainly(oracle, trial.master, trial.rule) &&
                        Pass(trial, WithUnchanged(trial), [&] {
                          Bytes outputs = WholeExpected(trial);
                          LayChangedInputs(plan, oracle.inputs(trial.master), outputs.data());
                          return outputs;
                        });
  if (auto read = oracle.CopiesHold(); !read) return read;
  if (trouble_) return std::unexpected(*trouble_);
  return {};
}

std::vector<Impostors::Bytes> Impostors::Expected() const {
  std::vector<Bytes> outputs;
  for (const Tried& tried : tried_) outputs.push_back(tried.expected);
  return outputs;
}

Impostors::Bytes Impostors::WholeExpected(const Trial& trial) {
  const std::byte* expected = trial.oracle.outputs(trial.master);
  return Bytes(expected, expected + trial.oracle.plan().output_stride);
}

std::vector<Impostors::Bytes> Impostors::WithUnchanged(const Trial& trial) const {
  std::vector<Bytes> outputs = Expected();
  for (size_t i = 0; i < tried_.size(); ++i)
    if (const ArgumentSpec& output = arguments_[tried_[i].output]; wire::IsChangedInput(output))
      outputs[i] = ReadInput(trial, tried_[i], output.twin - 1);
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

bool Impostors::Pass(const Trial& trial, const std::vector<Bytes>& outputs,
                     const std::function<Bytes()>& whole) {
  if (trouble_) return false;
  if (!whole_) {
    const bool passes = PassInPart(trial, outputs);
    if (!passes || !confirms_) return passes;
  }
  Bytes written = whole_ ? WholeExpected(trial) : whole();
  for (size_t i = 0; whole_ && i < tried_.size(); ++i)
    std::copy(outputs[i].begin(), outputs[i].end(),
              written.begin() + static_cast<std::ptrdiff_t>(arguments_[tried_[i].output].offset));
  CallCheck check =
      CheckWithoutHint(trial.oracle, written.data(), trial.master, true, trial.rule, trial.errors);
  trouble_ = std::move(check.trouble);
  return check.passed;
}

bool Impostors::PassInPart(const Trial& trial, const std::vector<Bytes>& outputs) const {
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

CopyView Impostors::ViewOfCopy(const Tried& tried, size_t input, const Bytes& given) const {
  return {tried.view.dtype,        tried.view.reference, tried.view.oracle,
          arguments_[input].dtype, given.data(),         tried.view.count};
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
      const Bytes read = ReadInput(trial, tried_[output], input);
      const auto factor = NearestFactor(ViewOfCopy(tried_[output], input, read));
      if (!factor) continue;
      copies_.push_back({output, input, 1});
      if (*factor != 1) copies_.push_back({output, input, *factor});
    }
}

void Impostors::TryCopies(const Trial& trial) {
  std::erase_if(copies_, [&](Copy& copy) {
    const Tried& tried = tried_[copy.output];
    const Bytes read = ReadInput(trial, tried, copy.input);
    const CopyView view = ViewOfCopy(tried, copy.input, read);
    std::vector<Bytes> outputs = Expected();
    outputs[copy.output] = ScaledCopy(view, copy.factor);
    const auto whole = [&] {
      const ArgumentSpec& output = arguments_[tried.output];
      CopyView all = view;
      all.input = trial.oracle.inputs(trial.master) + arguments_[copy.input].offset;
      all.count = Elements(output);
      Bytes written = WholeExpected(trial);
      const Bytes scaled = ScaledCopy(all, copy.factor);
      std::memcpy(written.data() + output.offset, scaled.data(), scaled.size());
      return written;
    };
    if (!Pass(trial, outputs, whole)) return true;
    copy.is_the_truth = copy.is_the_truth && IsScaledCopy(view, copy.factor);
    return false;
  });
}

}  // namespace assay
