#include "swap/manifest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/toml.h"
#include "problem/nearest.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFileBytesMax = 1 << 20;

// Takes values out of the tables. The first fault is kept; later calls give empty values.
class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {}

  const std::string& fault() const { return fault_; }

  void Fault(const toml::source_region& region, std::string_view key, std::string_view remedy) {
    if (fault_.empty())
      fault_ = fmt::format("{} line {}: {}: {}", path_, region.begin.line, key, remedy);
  }

  void RefuseOthers(const toml::table& table, const std::vector<std::string>& known) {
    for (const auto& [key, value] : table)
      if (std::find(known.begin(), known.end(), key.str()) == known.end())
        Fault(key.source(), key.str(), fmt::format("no such key{}", Suggestion(key.str(), known)));
  }

  std::string Text(const toml::table& table, std::string_view key, std::string_view remedy,
                   bool required = true) {
    const toml::node* node = table.get(key);
    if (node == nullptr) {
      if (required) Fault(table.source(), key, fmt::format("is missing: {}", remedy));
      return {};
    }
    const auto* text = node->as_string();
    if (text == nullptr || text->get().empty()) return Fault(node->source(), key, remedy), "";
    return text->get();
  }

  std::string OneOf(const toml::table& table, std::string_view key,
                    const std::vector<std::string>& known) {
    const std::string remedy = fmt::format("write \"{}\"", fmt::join(known, "\" or \""));
    const std::string text = Text(table, key, remedy);
    if (!text.empty() && std::find(known.begin(), known.end(), text) == known.end())
      Fault(table.get(key)->source(), key, remedy);
    return text;
  }

  // A list of texts.
  std::vector<std::string> Texts(const toml::table& table, std::string_view key,
                                 std::string_view remedy) {
    std::vector<std::string> texts;
    const toml::node* node = table.get(key);
    const toml::array* array = node != nullptr ? node->as_array() : nullptr;
    if (array == nullptr)
      return Fault(node != nullptr ? node->source() : table.source(), key, remedy), texts;
    for (const toml::node& element : *array) {
      if (!element.is_string()) Fault(element.source(), key, remedy);
      texts.push_back(element.value_or(std::string()));
    }
    return texts;
  }

  // The tables of [[key]].
  std::vector<const toml::table*> Tables(const toml::table& table, std::string_view key,
                                         bool required) {
    std::vector<const toml::table*> tables;
    const toml::node* node = table.get(key);
    if (node == nullptr && !required) return tables;
    const toml::array* array = node != nullptr ? node->as_array() : nullptr;
    if (array == nullptr || array->empty() || !array->is_homogeneous<toml::table>()) {
      Fault(node != nullptr ? node->source() : table.source(), key,
            fmt::format("write at least one [[{}]]", key));
      return tables;
    }
    for (const toml::node& element : *array) tables.push_back(element.as_table());
    return tables;
  }

  // A file, alone or with [text, other text] pairs behind it.
  SwapKernel Kernel(const toml::table& table, std::string_view key, bool required) {
    constexpr const char* kRemedy =
        "write a kernel's file, as \"norm.cu\", or [\"norm.cu\", \"1e-6f\", \"1e-5f\"] to change "
        "texts in it";
    SwapKernel kernel;
    const toml::node* node = table.get(key);
    if (node == nullptr || node->is_string()) {
      kernel.path = Text(table, key, kRemedy, required);
      return kernel;
    }
    const std::vector<std::string> texts = Texts(table, key, kRemedy);
    if (texts.size() % 2 == 0 || texts.front().empty())
      return Fault(node->source(), key, kRemedy), kernel;
    kernel.path = texts.front();
    for (size_t i = 1; i < texts.size(); i += 2) {
      if (texts[i].empty()) Fault(node->source(), key, kRemedy);
      kernel.changes.emplace_back(texts[i], texts[i + 1]);
    }
    return kernel;
  }

  SwapPlace Place(const toml::table& table, bool on_gpu) {
    std::vector<std::string> known{"name", "title", "kernel", on_gpu ? "plain" : "python"};
    RefuseOthers(table, known);
    SwapPlace place;
    place.name = Text(table, "name", "write a name, as \"rms_norm\"");
    place.title = Text(table, "title", "write in a phrase what it computes");
    place.kernel = Kernel(table, "kernel", false);
    if (on_gpu)
      place.plain = Kernel(table, "plain", true);
    else
      place.python = Text(table, "python", "write the function that takes its place");
    return place;
  }

  SwapBuffer Buffer(const toml::table& table) {
    RefuseOthers(table, {"name", "type", "shape"});
    SwapBuffer buffer;
    buffer.name = Text(table, "name", "write a name");
    buffer.type = Text(table, "type", "write a type of scratch memory, as \"bfloat16\"");
    buffer.shape = Texts(table, "shape", "write sizes, as [\"tokens.size(0)\", \"64\"]");
    return buffer;
  }

  SwapStep Step(const toml::table& table, const SwapManifest& manifest) {
    RefuseOthers(table, {"place", "when", "arguments"});
    SwapStep step;
    step.place = Text(table, "place", "write the name of a [[place]]");
    if (!step.place.empty() && manifest.Find(step.place) == nullptr)
      Fault(table.get("place")->source(), "place", "there is no [[place]] of this name");
    const std::string when = OneOf(table, "when", {"first", "layer", "last"});
    step.when = when == "first"  ? SwapStep::When::kFirst
                : when == "last" ? SwapStep::When::kLast
                                 : SwapStep::When::kLayer;
    constexpr const char* kRemedy =
        "write the kernel's tensors, as {x = \"hidden\", weight = \"layers_{layer}_norm\"}";
    const toml::node* node = table.get("arguments");
    const toml::table* arguments = node != nullptr ? node->as_table() : nullptr;
    if (arguments == nullptr) return Fault(table.source(), "arguments", kRemedy), step;
    for (const auto& [name, value] : *arguments) {
      if (!value.is_string()) Fault(value.source(), name.str(), kRemedy);
      step.arguments[std::string(name.str())] = value.value_or(std::string());
    }
    return step;
  }

  SwapManifest Whole(const toml::table& table) {
    SwapManifest manifest;
    manifest.device = OneOf(table, "device", {"cpu", "cuda"});
    const bool on_gpu = manifest.device == "cuda";
    std::vector<std::string> known{"title",  "problem", "device",    "size",
                                   "tokens", "trace",   "baselines", "place"};
    if (on_gpu) known.insert(known.end(), {"sums", "buffer", "step"});
    RefuseOthers(table, known);
    manifest.title = Text(table, "title", "write what the model does");
    manifest.problem = Text(table, "problem", "write a file of this folder");
    manifest.size = Text(table, "size", "write the name of a size in suite.toml");
    manifest.tokens = Text(table, "tokens", "write the input whose first axis counts tokens");
    manifest.trace = Text(table, "trace", "write the constant that shows the sums of layers");
    const std::string baselines =
        Text(table, "baselines", "write baselines, as \"eager,compiled\"", false);
    if (!baselines.empty()) manifest.baselines = baselines;
    for (const toml::table* place : Tables(table, "place", true)) {
      SwapPlace read = Place(*place, on_gpu);
      if (!read.name.empty() && manifest.Find(read.name) != nullptr)
        Fault(place->source(), "name", "two places have one name: remove one");
      manifest.places.push_back(std::move(read));
    }
    if (!on_gpu) return manifest;
    manifest.sums = Text(table, "sums", "write the buffer that holds the sums of layers");
    for (const toml::table* buffer : Tables(table, "buffer", true))
      manifest.buffers.push_back(Buffer(*buffer));
    for (const toml::table* step : Tables(table, "step", true))
      manifest.steps.push_back(Step(*step, manifest));
    return manifest;
  }

 private:
  std::string path_;
  std::string fault_;
};

Result<void> ReadKernel(const SwapManifest& manifest, SwapKernel* kernel) {
  if (kernel->path.empty()) return {};
  const std::string path = (fs::path(manifest.folder) / kernel->path).string();
  ASSAY_ASSIGN_OR_RETURN(std::string content, ReadFile(path, kFileBytesMax));
  ASSAY_ASSIGN_OR_RETURN(kernel->content, WithChanges(std::move(content), *kernel));
  return {};
}

}  // namespace

const SwapPlace* SwapManifest::Find(std::string_view place) const {
  const auto found = std::find_if(places.begin(), places.end(),
                                  [&](const SwapPlace& one) { return one.name == place; });
  return found == places.end() ? nullptr : &*found;
}

Result<SwapManifest> ParseSwapManifest(std::string_view text, const std::string& folder,
                                       const std::string& file) {
  const std::string path = folder + "/" + file;
  ASSAY_ASSIGN_OR_RETURN(const toml::table table, ParseToml(text, path));
  Reader reader(path);
  SwapManifest manifest = reader.Whole(table);
  if (!reader.fault().empty()) return UsageError(reader.fault());
  manifest.folder = folder;
  manifest.file = file;
  return manifest;
}

Result<std::string> WithChanges(std::string text, const SwapKernel& kernel) {
  for (const auto& [from, to] : kernel.changes) {
    size_t at = text.find(from);
    if (at == std::string::npos)
      return UsageError(
          fmt::format("{} has no '{}' that could be changed: take the change out of "
                      "the manifest, or write the text as it stands there",
                      kernel.path, from));
    for (; at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  }
  return text;
}

Result<SwapManifest> ReadSwapManifest(const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kFileBytesMax));
  fs::path folder = fs::path(path).lexically_normal().parent_path();
  if (folder.empty()) folder = ".";
  ASSAY_ASSIGN_OR_RETURN(
      SwapManifest manifest,
      ParseSwapManifest(text, folder.string(), fs::path(path).filename().string()));
  for (SwapPlace& place : manifest.places) {
    ASSAY_RETURN_IF_ERROR(ReadKernel(manifest, &place.kernel));
    ASSAY_RETURN_IF_ERROR(ReadKernel(manifest, &place.plain));
  }
  return manifest;
}

}  // namespace assay
