#include "speed/library_kernels.h"

#include <string.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>

#include "hosts/library_time.h"
#include "toolchain/cubin.h"

namespace assay {
namespace {

constexpr size_t kNameBytesMax = 100;
constexpr std::string_view kCompiledByTorch = "torch.compile";

// Parts of kernels' names, mangled or not, that these libraries are known by.
// Of a library that is missing here the kernels stand under their own names, and are foreign, too.
struct KnownPart {
  std::string_view part, library;
};
constexpr auto kKnownParts = std::to_array<KnownPart>({
    {"triton_poi_fused", kCompiledByTorch},
    {"triton_red_fused", kCompiledByTorch},
    {"triton_per_fused", kCompiledByTorch},
    {"triton_tem_fused", kCompiledByTorch},
    {"2at6native", "PyTorch"},
    {"2at4cuda", "PyTorch"},
    {"at::native", "PyTorch"},
    {"at_cuda_detail", "PyTorch"},
    {"softmax_warp_", "PyTorch"},  // in no namespace of its own
    {"pytorch_flash", "PyTorch"},
    {"fmha_cutlass", "PyTorch"},
    {"cudnn", "cuDNN"},
    {"xmma_fprop", "cuDNN"},
    {"xmma_dgrad", "cuDNN"},
    {"xmma_wgrad", "cuDNN"},
    {"implicit_convolve", "cuDNN"},
    {"cublas", "cuBLAS"},
    {"nvjet", "cuBLAS"},
    {"xmma_gemm", "cuBLAS"},
    {"cutlass_75_", "cuBLAS"},
    {"cutlass_80_", "cuBLAS"},
    {"ampere_sgemm", "cuBLAS"},
    {"volta_sgemm", "cuBLAS"},
    {"16816gemm", "cuBLAS"},
    {"1688gemm", "cuBLAS"},
    {"884gemm", "cuBLAS"},
    {"gemmSN", "cuBLAS"},
    {"gemv2", "cuBLAS"},
    {"gemvNSP", "cuBLAS"},
    {"splitKreduce", "cuBLAS"},
    {"cusparse", "cuSPARSE"},
    {"cusolver", "cuSOLVER"},
    {"vector_fft", "cuFFT"},
    {"regular_fft", "cuFFT"},
    {"nccl", "NCCL"},
});

bool IsOfName(char character) {
  return std::isalnum(static_cast<unsigned char>(character)) != 0 || character == '_' ||
         character == '$';
}

// Returns true if `text` has `name` as a whole name.
bool HasWhole(std::string_view text, std::string_view name) {
  for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || !IsOfName(text[at - 1])) && (end == text.size() || !IsOfName(text[end])))
      return true;
  }
  return false;
}

std::string Printable(std::string text) {
  std::erase_if(text, [](unsigned char c) { return c < 32 || c > 126; });
  return text;
}

// Returns the library that a foreign kernel is counted for.
std::string ForeignName(std::string_view kernel) {
  const std::string_view library = LibraryOf(kernel);
  if (!library.empty()) return std::string(library);
  const std::string name = Printable(KernelDisplayName(std::string(kernel)));
  return name.empty() ? kGeneratedCode : name.substr(0, kNameBytesMax);
}

uint64_t Sum(uint64_t a, uint64_t b) {
  return a > std::numeric_limits<uint64_t>::max() - b ? std::numeric_limits<uint64_t>::max()
                                                      : a + b;
}

}  // namespace

OwnKernels::OwnKernels(const BuiltCandidate& candidate) : candidate_(candidate) {
  for (const std::string_view cubin : FindCubins(candidate.artifact))
    for (CompiledKernel& kernel : ReadCubin(cubin)) compiled_.insert(std::move(kernel.name));
}

bool OwnKernels::Has(std::string_view name) const {
  // Triton compiles functions of the source under their plain names, except those that
  // torch.compile writes, of which the builder's cache has some.
  const bool defined = candidate_.source.form == CandidateForm::kPython &&
                       !name.starts_with("_Z") &&
                       HasWhole(candidate_.source.content, "def " + std::string(name));
  const std::string_view library = LibraryOf(name);
  if (library == kCompiledByTorch) return defined;
  // A trace cuts long names.
  const auto at = compiled_.lower_bound(name);
  const bool cut = name.size() == wire::kTracedNameBytes - 1;
  if (at != compiled_.end() && (*at == name || (cut && at->starts_with(name)))) return true;
  if (name.empty() || !library.empty()) return false;
  // Compressed images have their names beside them.
  return defined || HasWhole(candidate_.artifact, name);
}

std::string_view LibraryOf(std::string_view kernel) {
  for (const auto& [part, library] : kKnownParts)
    if (kernel.find(part) != std::string_view::npos) return library;
  return {};
}

std::string TraceFailure(const wire::KernelTrace& trace) {
  return Printable({trace.message, strnlen(trace.message, sizeof trace.message)});
}

LibraryTime LibraryTimeOf(const wire::KernelTrace& trace, const OwnKernels& own) {
  LibraryTime time;
  std::map<std::string, uint64_t> foreign_ns;
  uint64_t all_ns = trace.untold_ns;
  if (trace.untold_ns > 0) foreign_ns[kGeneratedCode] = trace.untold_ns;
  const uint32_t count = std::min(trace.kernel_count, wire::kTracedKernelsMax);
  for (uint32_t i = 0; i < count; ++i) {
    const wire::TracedKernel& kernel = trace.kernels[i];
    const std::string_view name(kernel.name, strnlen(kernel.name, sizeof kernel.name - 1));
    constexpr auto kRunsMax = uint64_t{std::numeric_limits<uint32_t>::max()};
    time.samples += static_cast<int64_t>(std::min(kernel.runs, kRunsMax));
    all_ns = Sum(all_ns, kernel.time_ns);
    if (own.Has(name)) continue;
    uint64_t& spent_ns = foreign_ns[ForeignName(name)];
    spent_ns = Sum(spent_ns, kernel.time_ns);
  }
  if (all_ns == 0) return {};
  for (const auto& [library, spent_ns] : foreign_ns) {
    const double share = static_cast<double>(spent_ns) / static_cast<double>(all_ns);
    time.shares[library] = share;
    time.foreign_share += share;
  }
  time.foreign_share = std::min(1.0, time.foreign_share);
  return time;
}

}  // namespace assay
