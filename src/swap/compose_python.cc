#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "base/hash.h"
#include "swap/compose.h"
#include "toolchain/build.h"

namespace assay {
namespace {

// Stands in for assay/kernel.h in a kernel: the same views, of PyTorch's tensors.
constexpr const char* kViews = R"cpp(
#include <torch/extension.h>

#include <cstdint>
#include <utility>
#include <vector>

  namespace assay {

  template <typename T, int Rank>
  class Tensor {
   public:
    explicit Tensor(const at::Tensor& tensor) : data_(static_cast<T*>(tensor.data_ptr())) {
      TORCH_CHECK(tensor.dim() == Rank, "a kernel takes ", Rank, " axes, and this tensor has ",
                  tensor.dim());
      TORCH_CHECK(tensor.is_contiguous(), "a kernel takes contiguous tensors");
      TORCH_CHECK(tensor.element_size() == static_cast<int64_t>(sizeof(T)),
                  "a kernel takes elements of ", sizeof(T), " bytes, and these have ",
                  tensor.element_size());
      for (int axis = 0; axis < Rank; ++axis) size_[axis] = tensor.size(axis);
    }
    T* data() const { return data_; }
    int64_t size(int axis) const { return size_[axis]; }
    int64_t stride(int axis) const {
      int64_t result = 1;
      for (int inner = axis + 1; inner < Rank; ++inner) result *= size_[inner];
      return result;
    }
    int64_t count() const { return Rank > 0 ? size_[0] * stride(0) : 1; }
    template <typename... Indices>
    T& operator()(Indices... indices) const {
      static_assert(sizeof...(Indices) == Rank, "give one index for each axis");
      int axis = 0;
      int64_t offset = 0;
      ((offset = offset * size_[axis++] + static_cast<int64_t>(indices)), ...);
      return data_[offset];
    }

   private:
    T* data_;
    int64_t size_[Rank > 0 ? Rank : 1] = {};
  };

  template <typename... Tensors, std::size_t... Index>
  void CallKernel(void (*kernel)(Tensors...), const std::vector<at::Tensor>& tensors,
                  std::index_sequence<Index...>) {
    TORCH_CHECK(tensors.size() == sizeof...(Tensors), "a kernel takes ", sizeof...(Tensors),
                " tensors, and gets ", tensors.size());
    kernel(Tensors(tensors[Index])...);
  }

  template <typename... Tensors>
  void Call(void (*kernel)(Tensors...), const std::vector<at::Tensor>& tensors) {
    CallKernel(kernel, tensors, std::index_sequence_for<Tensors...>());
  }

  }  // namespace assay

#define ASSAY_KERNEL(...) static void Run(__VA_ARGS__)
)cpp";

// A kernel's text in two: what it includes, and the rest.
struct Parts {
  std::set<std::string> includes;
  std::string body;
};

Parts Split(const std::string& content) {
  Parts parts;
  std::istringstream lines(content);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#include")) {
      if (!line.contains("assay/kernel.h")) parts.includes.insert(line);
      continue;
    }
    parts.body += line + "\n";
  }
  return parts;
}

std::string Indented(const std::string& text) {
  std::string indented;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    indented += line.empty() ? "\n" : "    " + line + "\n";
  return indented;
}

Result<std::vector<std::string>> FlagsOf(const SwapKernel& kernel) {
  const auto options = ParseBuildOptions(kernel.content, "cpp");
  if (!options) return UsageError(fmt::format("{}: {}", kernel.path, options.error()));
  return options->flags;
}

// The function of a place, with its kernel and the problem's own function in reach.
std::string Function(const SwapPlace& place) {
  const std::string kernel = place.kernel.path.empty()
                                 ? "None"
                                 : fmt::format("lambda *tensors: _kernels.{}(tensors)", place.name);
  return fmt::format(
      "def _place_of_{0}(kernel, original):\n{1}\n    return {0}\n\n\n"
      "{0} = _place_of_{0}({2}, {0})\n",
      place.name, Indented(place.python), kernel);
}

// One extension with all swapped kernels; empty if there are none.
Result<std::string> Extension(const std::vector<const SwapPlace*>& swapped) {
  std::set<std::string> includes;
  std::string bodies;
  std::vector<std::string> names, flags{"-O3", "-march=native"};
  for (const SwapPlace* place : swapped) {
    if (place->kernel.path.empty()) continue;
    const Parts parts = Split(place->kernel.content);
    includes.insert(parts.includes.begin(), parts.includes.end());
    bodies += fmt::format(
        "\n// ---- {0}: {1} ----\n\nnamespace {0}_kernel {{\n{2}\n}}  // namespace {0}_kernel\n\n"
        "void {0}(std::vector<at::Tensor> tensors) {{ assay::Call({0}_kernel::Run, tensors); }}\n",
        place->name, place->kernel.path, parts.body);
    names.push_back(place->name);
    ASSAY_ASSIGN_OR_RETURN(const std::vector<std::string> own, FlagsOf(place->kernel));
    for (const std::string& flag : own)
      if (std::find(flags.begin(), flags.end(), flag) == flags.end()) flags.push_back(flag);
  }
  if (names.empty()) return std::string();
  const std::string source = fmt::format("{}\n{}{}", fmt::join(includes, "\n"), kViews, bodies);
  if (source.contains("'''"))
    return UsageError("a kernel's text has ''', which ends a text of Python: take it out");
  const std::string hash = Sha256Hex(source).substr(0, 12);
  return fmt::format(
      "from torch.utils.cpp_extension import load_inline\n\n_SOURCE = r'''{}'''\n\n"
      "_kernels = load_inline(\n    name=\"assay_model_{}\",\n    cpp_sources=[_SOURCE],\n"
      "    functions=[\"{}\"],\n    extra_cflags=[\"{}\"],\n    extra_ldflags=[{}],\n)\n\n\n",
      source, hash, fmt::join(names, "\", \""), fmt::join(flags, "\", \""),
      std::find(flags.begin(), flags.end(), "-fopenmp") != flags.end() ? "\"-fopenmp\"" : "");
}

}  // namespace

Result<std::string> ComposePython(const SwapManifest& manifest, const std::string& problem,
                                  const Composition& composition) {
  std::vector<const SwapPlace*> swapped;
  for (const SwapPlace& place : manifest.places)
    if (composition.swapped.contains(place.name)) swapped.push_back(&place);
  std::string text = problem + "\n\n# ---- Made by assay model ----\n\n";
  ASSAY_ASSIGN_OR_RETURN(const std::string extension, Extension(swapped));
  text += extension;
  for (const SwapPlace* place : swapped) text += Function(*place) + "\n\n";
  if (!composition.doubled.empty())
    text += fmt::format(
        "def _twice(function):\n    def run(*arguments):\n        function(*arguments)\n"
        "        return function(*arguments)\n\n    return run\n\n\n{0} = _twice({0})\n\n\n",
        composition.doubled);
  return text + "class ModelNew(Model):\n    pass\n";
}

}  // namespace assay
