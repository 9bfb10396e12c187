#include "toolchain/device_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "toolchain/directives.h"
#include "toolchain/lines.h"

namespace assay {
namespace {

constexpr size_t kDefinitionsMax = 64;
constexpr size_t kNameBytesMax = 60;
constexpr size_t kKernelBytesMax = 200;

using Problem = std::optional<std::string>;

bool IsName(std::string_view text) { return text.size() <= kNameBytesMax && IsIdentifier(text); }

// A kernel as C++ names it: row_max, softmax<128>, detail::scan<float, 4>.
bool IsKernelName(std::string_view text) {
  return !text.empty() && text.size() <= kKernelBytesMax && IsNameStart(text[0]) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return IsNamePart(c) || c == ':' || c == '<' || c == '>' || c == ',' || c == ' ';
         });
}

// Splits at `separator` (a space stands for any run of spaces and tabs) outside of brackets.
std::expected<std::vector<std::string_view>, std::string> Split(std::string_view text,
                                                                char separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  const auto add = [&](size_t end) {
    const std::string_view part = TrimSpace(text.substr(begin, end - begin));
    if (separator != ' ' || !part.empty()) parts.push_back(part);
    begin = end + 1;
  };
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '(' || c == '[' || c == '<') ++depth;
    if (c == ')' || c == ']' || c == '>') --depth;
    if (depth < 0) return std::unexpected(fmt::format("'{}' closes nothing", c));
    const bool separates = separator == ' ' ? c == ' ' || c == '\t' : c == separator;
    if (depth == 0 && separates) add(at);
  }
  if (depth != 0) return std::unexpected("a bracket is not closed");
  add(text.size());
  return parts;
}

// (a, b, c), or one expression without brackets around it.
std::expected<std::vector<std::string>, std::string> List(std::string_view text, size_t length_max,
                                                          bool may_be_empty = false) {
  std::string_view inner = text;
  if (text.starts_with('(') && text.ends_with(')')) {
    int depth = 0;
    size_t at = 0;
    for (; at < text.size(); ++at) {
      if (text[at] == '(') ++depth;
      if (text[at] == ')' && --depth == 0) break;
    }
    if (at + 1 == text.size()) inner = TrimSpace(text.substr(1, text.size() - 2));
  }
  if (inner.empty() && may_be_empty) return {};
  auto parts = Split(inner, ',');
  if (!parts) return std::unexpected(parts.error());
  if (parts->size() > length_max)
    return std::unexpected(fmt::format("more than {} values", length_max));
  for (const std::string_view part : *parts)
    if (part.empty()) return std::unexpected("a value is missing");
  return std::vector<std::string>(parts->begin(), parts->end());
}

struct ElementType {
  std::string_view name;
  uint64_t bytes;
};
constexpr ElementType kElementTypes[] = {
    {"double", 8},  {"float64", 8},  {"float", 4}, {"float32", 4}, {"half", 2},
    {"float16", 2}, {"bfloat16", 2}, {"int64", 8}, {"int", 4},     {"int32", 4},
    {"int16", 2},   {"int8", 1},     {"uint8", 1}, {"byte", 1},
};

class Reader {
 public:
  Problem Read(const Directive& directive) {
    line_ = directive.line;
    const std::string_view word = directive.word, rest = directive.rest;
    if (word == "dim") return Define(rest, false);
    if (word == "constant") return Define(rest, true);
    if (word == "tune") return Tune(rest);
    if (word == "scratch") return Scratch(rest);
    if (word == "tensormap") return TensorMap(rest);
    if (word == "launch") return Launch(rest);
    return std::nullopt;
  }
  DeviceProgram Take() { return std::move(program_); }

 private:
  // A new name; its fault, where it has one.
  Problem Name(std::string_view name) {
    if (!IsName(name))
      return fmt::format("'{}' is no name (letters, digits and _, at most {})", ShownText(name),
                         kNameBytesMax);
    if (!names_.emplace(name).second) return fmt::format("a second '{}'", name);
    return std::nullopt;
  }

  // NAME = REST
  static std::expected<std::pair<std::string_view, std::string_view>, std::string> Assignment(
      std::string_view text, std::string_view form) {
    const size_t equals = text.find('=');
    const std::string_view value =
        equals == std::string_view::npos ? "" : TrimSpace(text.substr(equals + 1));
    if (value.empty()) return std::unexpected(fmt::format("write it as '{}'", form));
    return std::pair(TrimSpace(text.substr(0, equals)), value);
  }

  Problem Define(std::string_view text, bool is_macro) {
    auto found =
        Assignment(text, is_macro ? "//! constant NAME = x.size(0)" : "//! dim NAME = x.size(0)");
    if (!found) return found.error();
    if (program_.definitions.size() == kDefinitionsMax)
      return fmt::format("more than {} names", kDefinitionsMax);
    if (auto problem = Name(found->first)) return problem;
    program_.definitions.push_back(
        {line_, std::string(found->first), std::string(found->second), is_macro});
    return std::nullopt;
  }

  Problem Tune(std::string_view text) {
    auto tune = ParseTuneLine(line_, text);
    if (!tune) return tune.error();
    if (program_.tunes.size() == kTunesMax) return fmt::format("more than {} of them", kTunesMax);
    if (auto problem = Name(tune->name)) return problem;
    program_.tunes.push_back(std::move(*tune));
    return std::nullopt;
  }

  Problem Scratch(std::string_view text) {
    constexpr std::string_view kForm = "//! scratch NAME float[rows * 32]";
    const std::string_view name = TakeWord(text);
    const size_t open = text.find('[');
    if (open == std::string_view::npos || !text.ends_with(']') || text.size() < open + 3)
      return fmt::format("write it as '{}'", kForm);
    const std::string_view type = TrimSpace(text.substr(0, open));
    const auto* known = std::find_if(std::begin(kElementTypes), std::end(kElementTypes),
                                     [=](const ElementType& at) { return at.name == type; });
    if (known == std::end(kElementTypes)) {
      std::string names;
      for (const ElementType& at : kElementTypes)
        names += fmt::format("{}{}", names.empty() ? "" : ", ", at.name);
      return fmt::format("'{}' is no type of scratch elements; there are {}", ShownText(type),
                         names);
    }
    if (program_.scratches.size() == wire::kScratchesMax)
      return fmt::format("more than {} of them", wire::kScratchesMax);
    if (auto problem = Name(name)) return problem;
    program_.scratches.push_back({line_, std::string(name), known->bytes,
                                  std::string(text.substr(open + 1, text.size() - open - 2))});
    return std::nullopt;
  }

  // The settings of a line, KEY=VALUE; `take` gives a setting's fault, or nothing.
  template <typename Take>
  static Problem Settings(std::span<const std::string_view> fields, std::string_view known,
                          Take take) {
    std::set<std::string_view> seen;
    for (const std::string_view field : fields) {
      const size_t equals = field.find('=');
      const std::string_view key = field.substr(0, equals);
      if (equals == std::string_view::npos || equals + 1 == field.size())
        return fmt::format("'{}' is no setting; there are {}", ShownText(field), known);
      if (!seen.insert(key).second) return fmt::format("a second {}=", ShownText(key));
      const std::optional<Problem> problem = take(key, field.substr(equals + 1));
      if (!problem) return fmt::format("there is no {}=; there are {}", ShownText(key), known);
      if (*problem) return fmt::format("{}=: {}", key, **problem);
    }
    return std::nullopt;
  }

  static Problem ReadList(std::string_view text, size_t length_max, bool may_be_empty,
                          std::vector<std::string>* list) {
    auto values = List(text, length_max, may_be_empty);
    if (!values) return values.error();
    *list = std::move(*values);
    return std::nullopt;
  }

  static Problem ReadAxes(std::string_view text, std::array<std::string, 3>* axes) {
    std::vector<std::string> values;
    if (auto problem = ReadList(text, 3, false, &values)) return problem;
    std::move(values.begin(), values.end(), axes->begin());
    return std::nullopt;
  }

  Problem TensorMap(std::string_view text) {
    constexpr std::string_view kForm = "//! tensormap NAME = x box=(64, 64) swizzle=128";
    auto found = Assignment(text, kForm);
    if (!found) return found.error();
    const auto fields = Split(found->second, ' ');
    if (!fields) return fields.error();
    if (program_.tensor_maps.size() == wire::kTensorMapsMax)
      return fmt::format("more than {} of them", wire::kTensorMapsMax);
    if (auto problem = Name(found->first)) return problem;
    DeviceTensorMap map;
    map.line = line_;
    map.name = std::string(found->first);
    map.tensor = std::string(fields->front());
    const auto problem =
        Settings(std::span(*fields).subspan(1), "shape=, box= and swizzle=",
                 [&](std::string_view key, std::string_view value) -> std::optional<Problem> {
                   if (key == "shape")
                     return ReadList(value, wire::kTensorMapRankMax, false, &map.shape);
                   if (key == "box")
                     return ReadList(value, wire::kTensorMapRankMax, false, &map.box);
                   if (key != "swizzle") return std::nullopt;
                   for (const int bytes : {0, 32, 64, 128})
                     if (value == std::to_string(bytes)) {
                       map.swizzle_bytes = bytes;
                       return Problem();
                     }
                   return Problem("0, 32, 64 or 128 bytes");
                 });
    if (problem) return problem;
    if (map.box.empty()) return fmt::format("box= is missing; write it as '{}'", kForm);
    program_.tensor_maps.push_back(std::move(map));
    return std::nullopt;
  }

  Problem Launch(std::string_view text) {
    constexpr std::string_view kForm = "//! launch KERNEL grid=(rows) block=(128) args=(x, out)";
    const auto fields = Split(text, ' ');
    if (!fields) return fields.error();
    if (fields->empty() || !IsKernelName(fields->front()))
      return fmt::format("a kernel's name is missing; write it as '{}'", kForm);
    if (program_.launches.size() == wire::kLaunchesMax)
      return fmt::format("more than {} launches", wire::kLaunchesMax);
    DeviceLaunch launch;
    launch.line = line_;
    launch.kernel = std::string(fields->front());
    launch.grid = launch.block = launch.cluster = {"1", "1", "1"};
    bool has_grid = false, has_block = false;
    const auto problem =
        Settings(std::span(*fields).subspan(1), "grid=, block=, cluster=, shared= and args=",
                 [&](std::string_view key, std::string_view value) -> std::optional<Problem> {
                   has_grid = has_grid || key == "grid";
                   has_block = has_block || key == "block";
                   launch.has_cluster = launch.has_cluster || key == "cluster";
                   if (key == "grid") return ReadAxes(value, &launch.grid);
                   if (key == "block") return ReadAxes(value, &launch.block);
                   if (key == "cluster") return ReadAxes(value, &launch.cluster);
                   if (key == "args")
                     return ReadList(value, wire::kLaunchArgumentsMax, true, &launch.arguments);
                   if (key != "shared") return std::nullopt;
                   launch.shared_bytes = std::string(value);
                   return Problem();
                 });
    if (problem) return problem;
    if (!has_grid || !has_block)
      return fmt::format("{}= is missing; write it as '{}'", has_grid ? "block" : "grid", kForm);
    program_.launches.push_back(std::move(launch));
    return std::nullopt;
  }

  int line_ = 0;
  std::set<std::string, std::less<>> names_;
  DeviceProgram program_;
};

}  // namespace

std::expected<DeviceProgram, std::string> ParseDeviceProgram(std::string_view source) {
  Reader reader;
  for (const Directive& directive : FindDirectives(source, "cuda"))
    if (const auto problem = reader.Read(directive))
      return std::unexpected(
          fmt::format("line {}: //! {}: {}", directive.line, directive.word, *problem));
  DeviceProgram program = reader.Take();
  if (program.launches.empty())
    return std::unexpected(
        "it launches nothing: write '//! launch KERNEL grid=(...) block=(...) args=(...)'");
  return program;
}

bool IsDeviceProgram(std::string_view source) {
  const auto directives = FindDirectives(source, "cuda");
  return std::any_of(directives.begin(), directives.end(),
                     [](const Directive& directive) { return directive.word == "launch"; });
}

}  // namespace assay
