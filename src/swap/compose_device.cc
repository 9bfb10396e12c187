// Theory of operation. Each step of the manifest is planned as the judge plans a candidate, for the
// shapes of the tensors that it gets. So no expression is left: the composed file has numbers. A
// step's source stands once, in a namespace of its own, with its constants as macros; its launches
// stand once a layer.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <sstream>

#include "swap/compose.h"
#include "toolchain/device_program.h"
#include "toolchain/directives.h"

namespace assay {
namespace {

constexpr std::string_view kLayer = "{layer}";

std::string NameOf(const wire::ArgumentSpec& spec) {
  return {spec.name, strnlen(spec.name, wire::kNameBytes)};
}

std::string WithLayer(std::string text, int layer) {
  const size_t at = text.find(kLayer);
  return at == std::string::npos ? text : text.replace(at, kLayer.size(), std::to_string(layer));
}

struct Shape {
  std::vector<int64_t> sizes;
  uint64_t element_bytes = 0;
};

// Tensors of the problem, and buffers, by name.
using Shapes = std::map<std::string, Shape, std::less<>>;

uint64_t BytesOf(std::string_view type) {
  if (type == "double" || type == "float64" || type == "int64") return 8;
  if (type == "float" || type == "float32" || type == "int" || type == "int32") return 4;
  return type == "uint8" || type == "int8" || type == "byte" ? 1 : 2;
}

// The type of scratch memory of so many bytes an element.
std::string_view TypeOf(uint64_t bytes) {
  switch (bytes) {
    case 1:
      return "uint8";
    case 2:
      return "bfloat16";
    case 4:
      return "float";
    default:
      return "double";
  }
}

// The words of `#define WORD ...` lines.
std::set<std::string> DefinedIn(const std::string& source) {
  std::set<std::string> words;
  std::istringstream lines(source);
  for (std::string line; std::getline(lines, line);) {
    constexpr std::string_view kDefine = "#define ";
    if (!line.starts_with(kDefine)) continue;
    size_t end = kDefine.size();
    while (end < line.size() && IsNamePart(line[end])) ++end;
    words.insert(line.substr(kDefine.size(), end - kDefine.size()));
  }
  return words;
}

// All kernels have their dynamic shared memory under one name: in a namespace the compiler takes a
// declaration within a function for one of the host's.
constexpr const char* kSharedMemory =
    "extern __shared__ __align__(1024) unsigned char assay_shared_memory[];\n";

// The source with pointers to that in the place of its own declarations.
std::string WithOneSharedMemory(std::string source) {
  constexpr std::string_view kShared = "extern __shared__";
  for (size_t at = source.find(kShared); at != std::string::npos; at = source.find(kShared, at)) {
    const size_t open = source.find('[', at), end = source.find(';', at);
    if (open == std::string::npos || end == std::string::npos || end < open) break;
    size_t name = open;
    while (IsNamePart(source[name - 1])) --name;
    // The type, behind `__align__(128)` where there is one.
    std::string type = source.substr(at + kShared.size(), name - at - kShared.size());
    if (const size_t closed = type.rfind(')'); closed != std::string::npos)
      type = type.substr(closed + 1);
    const std::string pointer =
        fmt::format("{0}* const {1} = reinterpret_cast<{0}*>(::assay_shared_memory);", type,
                    source.substr(name, open - name));
    source.replace(at, end + 1 - at, pointer);
    at += pointer.size();
  }
  return source;
}

// The source without the lines of the device form, which the composed file has for all steps, and
// without includes, which come to `includes`.
std::string BodyOf(const std::string& source, std::set<std::string>* includes,
                   std::set<std::string>* flags) {
  std::string body;
  std::istringstream lines(source);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("//! flags")) flags->insert(line);
    if (line.starts_with("#include")) includes->insert(line);
    if (!line.starts_with("//!") && !line.starts_with("#include")) body += line + "\n";
  }
  return body;
}

// One step of the manifest, planned.
struct PlannedStep {
  const SwapStep* step = nullptr;
  const SwapKernel* kernel = nullptr;
  std::string prefix;                // of its names: "qkv_0"
  std::vector<std::string> tensors;  // the kernel's names, in the order of the plan's indices
  DeviceProgram program;
  DevicePlan plan;
};

class Composer {
 public:
  Composer(const SwapManifest& manifest, const ProblemDescription& description,
           const Composition& composition)
      : manifest_(manifest),
        description_(description),
        composition_(composition),
        layers_(CountLayers(manifest, description)) {}

  Result<std::string> Run() {
    ASSAY_RETURN_IF_ERROR(FindShapes());
    for (const SwapStep& step : manifest_.steps) ASSAY_RETURN_IF_ERROR(PlanStep(step));
    for (const PlannedStep& step : steps_)
      if (step.step->when == SwapStep::When::kFirst) ASSAY_RETURN_IF_ERROR(Launch(step, 0));
    for (int layer = 0; layer < layers_; ++layer)
      for (const PlannedStep& step : steps_)
        if (step.step->when == SwapStep::When::kLayer) ASSAY_RETURN_IF_ERROR(Launch(step, layer));
    for (const PlannedStep& step : steps_)
      if (step.step->when == SwapStep::When::kLast) ASSAY_RETURN_IF_ERROR(Launch(step, 0));
    ASSAY_RETURN_IF_ERROR(LaunchAgain());
    return Text();
  }

 private:
  Result<void> FindShapes() {
    SizeScope scope;
    for (const wire::ArgumentSpec& spec : description_.arguments) {
      if (spec.kind != wire::Kind::kTensor) continue;
      const std::vector<int64_t> sizes(spec.shape, spec.shape + spec.rank);
      shapes_[NameOf(spec)] = {sizes, wire::ElementBytes(spec.dtype)};
      scope.tensors[NameOf(spec)] = sizes;
    }
    for (const SwapBuffer& buffer : manifest_.buffers) {
      Shape shape{{}, BytesOf(buffer.type)};
      for (const std::string& text : buffer.shape) {
        const auto size = EvaluateSize(text, scope);
        if (!size)
          return UsageError(
              fmt::format("{}: buffer {}: {}", manifest_.Path(), buffer.name, size.error()));
        shape.sizes.push_back(*size);
      }
      int64_t count = 1;
      for (const int64_t size : shape.sizes) count *= size;
      scratches_ += fmt::format("//! scratch {} {}[{}]\n", buffer.name, buffer.type, count);
      shapes_[buffer.name] = std::move(shape);
    }
    return {};
  }

  Error At(const SwapStep& step, const std::string& what) const {
    return {ErrorKind::kUsage,
            fmt::format("{}: step of place {}: {}", manifest_.Path(), step.place, what)};
  }

  Result<void> PlanStep(const SwapStep& step) {
    const SwapPlace& place = *manifest_.Find(step.place);
    PlannedStep planned;
    planned.step = &step;
    const bool swapped = composition_.swapped.contains(place.name) && !place.kernel.path.empty();
    planned.kernel = swapped ? &place.kernel : &place.plain;
    planned.prefix = fmt::format("{}_{}", step.place, counts_[step.place]++);
    auto program = ParseDeviceProgram(planned.kernel->content);
    if (!program)
      return std::unexpected(
          At(step, fmt::format("{}: {}", planned.kernel->path, program.error())));
    planned.program = std::move(*program);
    std::vector<DeviceTensor> tensors;
    for (const auto& [name, actual] : step.arguments) {
      const auto found = shapes_.find(WithLayer(actual, 0));
      if (found == shapes_.end())
        return std::unexpected(
            At(step, fmt::format("there is no tensor or buffer '{}'", WithLayer(actual, 0))));
      planned.tensors.push_back(name);
      tensors.push_back({name, found->second.sizes, found->second.element_bytes, false});
    }
    auto plan = PlanDeviceProgram(planned.program, tensors, {});
    if (!plan)
      return std::unexpected(At(step, fmt::format("{}: {}", planned.kernel->path, plan.error())));
    planned.plan = std::move(*plan);
    for (size_t i = 0; i < planned.plan.scratch_bytes.size(); ++i) {
      const DeviceScratch& scratch = planned.program.scratches[i];
      scratches_ += fmt::format("//! scratch {}_{} {}[{}]\n", planned.prefix, scratch.name,
                                TypeOf(scratch.element_bytes),
                                planned.plan.scratch_bytes[i] / scratch.element_bytes);
    }
    AddSource(planned);
    steps_.push_back(std::move(planned));
    return {};
  }

  void AddSource(const PlannedStep& step) {
    const std::string body = WithOneSharedMemory(BodyOf(step.kernel->content, &includes_, &flags_));
    std::set<std::string> own, words = DefinedIn(body);
    for (const DeviceLaunch& launch : step.program.launches) own.insert(launch.kernel);
    sources_ += fmt::format("\n// ---- {}: {} ----\n\n", step.prefix, step.kernel->path);
    for (const auto& [name, value] : step.plan.macros) {
      sources_ += fmt::format("#define {} {}\n", name, value);
      words.insert(name);
    }
    for (const std::string& name : own) {
      sources_ += fmt::format("#define {0} {1}_{0}\n", name, step.prefix);
      words.insert(name);
    }
    sources_ += fmt::format("namespace {0} {{\n{1}}}  // namespace {0}\n", step.prefix, body);
    for (const std::string& word : words) sources_ += fmt::format("#undef {}\n", word);
    // Launches name their kernels without a namespace.
    for (const std::string& name : own)
      sources_ += fmt::format("using {0}::{0}_{1};\n", step.prefix, name);
  }

  // The tensor or buffer that a kernel's tensor is in this layer. Where sums of layers are shown,
  // they lie in outputs instead of their buffer.
  std::string Actual(const PlannedStep& step, const std::string& tensor, int layer) const {
    const std::string actual = WithLayer(step.step->arguments.at(tensor), layer);
    if (!composition_.traced || actual != manifest_.sums) return actual;
    const bool writes = tensor.starts_with("out");
    switch (step.step->when) {
      case SwapStep::When::kFirst:
        return actual;
      case SwapStep::When::kLast:
        return fmt::format("out{}", layers_);
      case SwapStep::When::kLayer:
        break;
    }
    if (writes) return fmt::format("out{}", layer + 1);
    return layer == 0 ? actual : fmt::format("out{}", layer);
  }

  // The name of a tensor map, whose line is written where it is met first.
  std::string MapName(const PlannedStep& step, uint32_t index, int layer) {
    const PlannedTensorMap& map = step.plan.tensor_maps[index];
    const std::string base = map.of_scratch
                                 ? step.prefix + "_" + step.program.scratches[map.index].name
                                 : Actual(step, step.tensors[map.index], layer);
    const std::string rest =
        fmt::format("shape=({}) box=({}) swizzle={}", fmt::join(map.shape, ", "),
                    fmt::join(map.box, ", "), map.swizzle_bytes);
    const auto [at, is_new] =
        maps_.try_emplace(base + " " + rest, fmt::format("map_{}", maps_.size()));
    if (is_new) map_lines_ += fmt::format("//! tensormap {} = {} {}\n", at->second, base, rest);
    return at->second;
  }

  Result<void> Launch(const PlannedStep& step, int layer) {
    for (size_t i = 0; i < step.plan.launches.size(); ++i) {
      const PlannedLaunch& launch = step.plan.launches[i];
      std::vector<std::string> arguments;
      for (const PlannedArgument& argument : launch.arguments) {
        switch (argument.kind) {
          case PlannedArgument::Kind::kTensor: {
            const std::string& tensor = step.tensors[argument.index];
            const std::string actual = Actual(step, tensor, layer);
            const auto found = shapes_.find(actual);
            const auto first = shapes_.find(WithLayer(step.step->arguments.at(tensor), 0));
            if (found == shapes_.end() || found->second.sizes != first->second.sizes)
              return std::unexpected(
                  At(*step.step,
                     fmt::format("there is no '{}' of the shape that layer 0 has", actual)));
            arguments.push_back(actual);
            break;
          }
          case PlannedArgument::Kind::kScratch:
            arguments.push_back(step.prefix + "_" + step.program.scratches[argument.index].name);
            break;
          case PlannedArgument::Kind::kTensorMap:
            arguments.push_back(MapName(step, argument.index, layer));
            break;
          case PlannedArgument::Kind::kInteger:
            arguments.push_back(std::to_string(argument.value));
            break;
          case PlannedArgument::Kind::kNumber:
            return std::unexpected(At(*step.step, "a kernel that takes numbers of a call"));
        }
      }
      launches_ += fmt::format("//! launch {}_{} grid=({}) block=({})", step.prefix, launch.kernel,
                               fmt::join(launch.grid, ", "), fmt::join(launch.block, ", "));
      if (step.program.launches[i].has_cluster)
        launches_ += fmt::format(" cluster=({})", fmt::join(launch.cluster, ", "));
      if (launch.shared_bytes > 0) launches_ += fmt::format(" shared={}", launch.shared_bytes);
      launches_ += fmt::format(" args=({})\n", fmt::join(arguments, ", "));
    }
    return {};
  }

  // The place whose work is done twice, once more for all layers: its weights have left the caches
  // since they were read.
  Result<void> LaunchAgain() {
    for (int layer = 0; layer < layers_; ++layer)
      for (const PlannedStep& step : steps_) {
        const bool once = step.step->when != SwapStep::When::kLayer;
        if (step.step->place == composition_.doubled && (!once || layer == 0))
          ASSAY_RETURN_IF_ERROR(Launch(step, layer));
      }
    return {};
  }

  std::string Text() const {
    return fmt::format(
        "// {}. Made by assay model; swapped: {}.\n{}{}{}{}{}{}\n{}{}", manifest_.title,
        composition_.swapped.empty() ? "nothing"
                                     : fmt::format("{}", fmt::join(composition_.swapped, ", ")),
        fmt::join(flags_, "\n"), flags_.empty() ? "" : "\n", scratches_, map_lines_, launches_,
        fmt::join(includes_, "\n"), kSharedMemory, sources_);
  }

  const SwapManifest& manifest_;
  const ProblemDescription& description_;
  const Composition& composition_;
  const int layers_;
  Shapes shapes_;
  std::vector<PlannedStep> steps_;
  std::map<std::string, int> counts_;        // steps of a place
  std::map<std::string, std::string> maps_;  // a tensor map's line -> its name
  std::set<std::string> includes_, flags_;
  std::string scratches_, map_lines_, launches_, sources_;  // of the composed file
};

}  // namespace

int CountLayers(const SwapManifest& manifest, const ProblemDescription& description) {
  std::set<std::string> names;
  for (const wire::ArgumentSpec& spec : description.arguments) names.insert(NameOf(spec));
  for (const SwapStep& step : manifest.steps)
    for (const auto& [tensor, actual] : step.arguments) {
      if (step.when != SwapStep::When::kLayer || !actual.contains(kLayer)) continue;
      int layers = 0;
      while (names.contains(WithLayer(actual, layers))) ++layers;
      return layers;
    }
  return 0;
}

Result<std::string> ComposeDevice(const SwapManifest& manifest,
                                  const ProblemDescription& description,
                                  const Composition& composition) {
  return Composer(manifest, description, composition).Run();
}

}  // namespace assay
