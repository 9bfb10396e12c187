#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "toolchain/device_program.h"

namespace assay {
namespace {

// What CUDA allows on every device that Assay knows; what a device allows less of, it says itself.
constexpr int64_t kGridMax[] = {(int64_t{1} << 31) - 1, 65535, 65535};
constexpr int64_t kBlockMax[] = {1024, 1024, 64};
constexpr int64_t kBlockThreadsMax = 1024;
constexpr int64_t kClusterBlocksMax = 16;
constexpr int64_t kSharedBytesMax = 1 << 20;
constexpr int64_t kScratchBytesMax = int64_t{1} << 40;
constexpr int64_t kBoxMax = 256;
constexpr int64_t kExtentMax = int64_t{1} << 32;

using Problem = std::optional<std::string>;

class Planner {
 public:
  Planner(const DeviceProgram& program, std::span<const DeviceTensor> tensors)
      : program_(program), tensors_(tensors) {}

  std::expected<DevicePlan, std::string> Run(const std::map<std::string, int64_t>& tuned) {
    for (const DeviceTensor& tensor : tensors_)
      if (!tensor.is_number) scope_.tensors[tensor.name] = tensor.shape;
    for (const auto& [name, value] : tuned)
      if (std::none_of(program_.tunes.begin(), program_.tunes.end(),
                       [&](const TuneLine& tune) { return tune.name == name; }))
        return std::unexpected(fmt::format("there is no '//! tune {}' line", name));
    for (const auto& step : {&Planner::Tune, &Planner::Define, &Planner::Scratch,
                             &Planner::TensorMaps, &Planner::Launches})
      if (const auto problem = (this->*step)(tuned))
        return std::unexpected(fmt::format("line {}: {}", line_, *problem));
    return std::move(plan_);
  }

 private:
  using Tuned = const std::map<std::string, int64_t>&;

  // A name of the lines' must not hide a tensor of the problem's.
  Problem Shadows(const std::string& name) const {
    for (const DeviceTensor& tensor : tensors_)
      if (tensor.name == name) return fmt::format("'{}' is a name of the problem's already", name);
    return std::nullopt;
  }

  Problem Value(const std::string& text, std::string_view what, int64_t low, int64_t high,
                int64_t* value) const {
    auto found = EvaluateSize(text, scope_);
    if (!found) return found.error();
    if (*found < low || *found > high)
      return fmt::format("{} is {}: it must be {} to {}", what, *found, low, high);
    *value = *found;
    return std::nullopt;
  }

  Problem Tune(Tuned tuned) {
    for (const TuneLine& tune : program_.tunes) {
      line_ = tune.line;
      if (auto problem = Shadows(tune.name)) return problem;
      const auto chosen = tuned.find(tune.name);
      const int64_t value = chosen == tuned.end() ? tune.values.front() : chosen->second;
      if (std::find(tune.values.begin(), tune.values.end(), value) == tune.values.end())
        return fmt::format("{} = {} is none of its values", tune.name, value);
      scope_.values[tune.name] = plan_.macros[tune.name] = value;
    }
    return std::nullopt;
  }

  Problem Define(Tuned) {
    for (const DeviceDefinition& definition : program_.definitions) {
      line_ = definition.line;
      if (auto problem = Shadows(definition.name)) return problem;
      int64_t value = 0;
      constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
      if (auto problem = Value(definition.expression, definition.name, -kMax, kMax, &value))
        return problem;
      scope_.values[definition.name] = value;
      if (definition.is_macro) plan_.macros[definition.name] = value;
    }
    return std::nullopt;
  }

  Problem Scratch(Tuned) {
    for (const DeviceScratch& scratch : program_.scratches) {
      line_ = scratch.line;
      if (auto problem = Shadows(scratch.name)) return problem;
      int64_t count = 0;
      const int64_t most = kScratchBytesMax / static_cast<int64_t>(scratch.element_bytes);
      if (auto problem = Value(scratch.count, "its number of elements", 1, most, &count))
        return problem;
      plan_.scratch_bytes.push_back(static_cast<uint64_t>(count) * scratch.element_bytes);
    }
    return std::nullopt;
  }

  // The index of a thing of this name, in a list of things with names.
  template <typename List>
  static std::optional<uint32_t> Find(const List& list, const std::string& name) {
    for (size_t i = 0; i < list.size(); ++i)
      if (list[i].name == name) return static_cast<uint32_t>(i);
    return std::nullopt;
  }

  Problem TensorMaps(Tuned) {
    for (const DeviceTensorMap& map : program_.tensor_maps) {
      line_ = map.line;
      if (auto problem = Shadows(map.name)) return problem;
      PlannedTensorMap planned;
      planned.swizzle_bytes = map.swizzle_bytes;
      std::vector<std::string> shape = map.shape;
      if (const auto tensor = Find(tensors_, map.tensor)) {
        const DeviceTensor& found = tensors_[*tensor];
        if (found.is_number) return fmt::format("{} is a number, and no tensor", map.tensor);
        planned.index = *tensor;
        planned.element_bytes = found.element_bytes;
        if (shape.empty())
          for (const int64_t size : found.shape) shape.push_back(std::to_string(size));
      } else if (const auto scratch = Find(program_.scratches, map.tensor)) {
        planned.of_scratch = true;
        planned.index = *scratch;
        planned.element_bytes = program_.scratches[*scratch].element_bytes;
        if (shape.empty()) return std::string("a scratch buffer has no shape: say shape=(...)");
      } else {
        return fmt::format("there is no tensor or scratch buffer '{}'", map.tensor);
      }
      if (auto problem = Shape(map, shape, &planned)) return problem;
      plan_.tensor_maps.push_back(std::move(planned));
    }
    return std::nullopt;
  }

  Problem Shape(const DeviceTensorMap& map, const std::vector<std::string>& shape,
                PlannedTensorMap* planned) {
    if (shape.empty() || shape.size() > wire::kTensorMapRankMax)
      return fmt::format("a tensor map has 1 to {} axes, not {}: say shape=(...)",
                         wire::kTensorMapRankMax, shape.size());
    if (map.box.size() != shape.size())
      return fmt::format("box= has {} axes, and the shape {}", map.box.size(), shape.size());
    int64_t elements = 1;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      int64_t size = 0, box = 0;
      if (auto problem = Value(shape[axis], "an axis of the shape", 1, kExtentMax, &size))
        return problem;
      if (auto problem = Value(map.box[axis], "an axis of the box", 1, kBoxMax, &box))
        return problem;
      planned->shape.push_back(static_cast<uint64_t>(size));
      planned->box.push_back(static_cast<uint32_t>(box));
      if (__builtin_mul_overflow(elements, size, &elements))
        return std::string("the shape has more elements than 64 bits count");
    }
    const uint64_t there = planned->of_scratch
                               ? plan_.scratch_bytes[planned->index] / planned->element_bytes
                               : Elements(tensors_[planned->index]);
    if (static_cast<uint64_t>(elements) > there)
      return fmt::format("the shape has {} elements, and {} has {}", elements, map.tensor, there);
    return std::nullopt;
  }

  static uint64_t Elements(const DeviceTensor& tensor) {
    uint64_t elements = 1;
    for (const int64_t size : tensor.shape) elements *= static_cast<uint64_t>(size);
    return elements;
  }

  Problem Axes(const std::array<std::string, 3>& texts, std::string_view what,
               std::span<const int64_t> most, std::array<uint32_t, 3>* axes) const {
    for (size_t axis = 0; axis < 3; ++axis) {
      int64_t value = 0;
      const std::string name = fmt::format("{}.{}", what, "xyz"[axis]);
      if (auto problem = Value(texts[axis], name, 1, most[axis], &value)) return problem;
      (*axes)[axis] = static_cast<uint32_t>(value);
    }
    return std::nullopt;
  }

  Problem Argument(const std::string& text, PlannedArgument* argument) const {
    using Kind = PlannedArgument::Kind;
    if (const auto tensor = Find(tensors_, text)) {
      *argument = {tensors_[*tensor].is_number ? Kind::kNumber : Kind::kTensor, *tensor, 0};
    } else if (const auto scratch = Find(program_.scratches, text)) {
      *argument = {Kind::kScratch, *scratch, 0};
    } else if (const auto map = Find(program_.tensor_maps, text)) {
      *argument = {Kind::kTensorMap, *map, 0};
    } else {
      constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
      argument->kind = Kind::kInteger;
      return Value(text, text, -kMax, kMax, &argument->value);
    }
    return std::nullopt;
  }

  Problem Launches(Tuned) {
    for (const DeviceLaunch& launch : program_.launches) {
      line_ = launch.line;
      PlannedLaunch planned;
      planned.line = launch.line;
      planned.kernel = launch.kernel;
      constexpr int64_t kClusterMax[] = {kClusterBlocksMax, kClusterBlocksMax, kClusterBlocksMax};
      if (auto problem = Axes(launch.grid, "grid", kGridMax, &planned.grid)) return problem;
      if (auto problem = Axes(launch.block, "block", kBlockMax, &planned.block)) return problem;
      if (auto problem = Axes(launch.cluster, "cluster", kClusterMax, &planned.cluster))
        return problem;
      const auto product = [](const std::array<uint32_t, 3>& axes) {
        return int64_t{axes[0]} * axes[1] * axes[2];
      };
      if (product(planned.block) > kBlockThreadsMax)
        return fmt::format("a block of {} threads: there are {} at most", product(planned.block),
                           kBlockThreadsMax);
      if (product(planned.cluster) > kClusterBlocksMax)
        return fmt::format("a cluster of {} blocks: there are {} at most", product(planned.cluster),
                           kClusterBlocksMax);
      for (size_t axis = 0; axis < 3; ++axis)
        if (planned.grid[axis] % planned.cluster[axis] != 0)
          return fmt::format("grid.{} is {}: no multiple of the cluster's {}", "xyz"[axis],
                             planned.grid[axis], planned.cluster[axis]);
      int64_t shared = 0;
      if (auto problem = Value(launch.shared_bytes, "shared", 0, kSharedBytesMax, &shared))
        return problem;
      planned.shared_bytes = static_cast<uint32_t>(shared);
      for (const std::string& text : launch.arguments)
        if (auto problem = Argument(text, &planned.arguments.emplace_back())) return problem;
      plan_.launches.push_back(std::move(planned));
    }
    return std::nullopt;
  }

  const DeviceProgram& program_;
  std::span<const DeviceTensor> tensors_;
  SizeScope scope_;
  DevicePlan plan_;
  int line_ = 0;
};

}  // namespace

std::expected<DevicePlan, std::string> PlanDeviceProgram(
    const DeviceProgram& program, std::span<const DeviceTensor> tensors,
    const std::map<std::string, int64_t>& tuned) {
  return Planner(program, tensors).Run(tuned);
}

}  // namespace assay
