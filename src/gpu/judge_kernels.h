// The judge's kernels on its GPU: what the CPU does with SIMD loops in values/slot_layout and
// judge/error_scan, on device memory. Synchronous: each call returns when its work is done.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/gpu.h"
#include "gpu/judge_tasks.h"

namespace assay {

// The kernels of gpu/judge_kernels.cu, in the order in which an image holds them.
std::span<const char* const> JudgeKernelNames();

class JudgeKernels {
 public:
  // `image`: a device image (wire/device_image.h) of those kernels. `gpu` must stay.
  static Result<JudgeKernels> Load(const Gpu& gpu, const std::string& image);
  JudgeKernels(JudgeKernels&& other) noexcept;
  JudgeKernels& operator=(JudgeKernels&&) = delete;
  ~JudgeKernels();

  // Fills ranges with their patterns.
  Result<void> Fill(std::span<const gpu::Range> ranges);
  // For each range the index of its first word that is not the pattern, or its number of words.
  Result<std::vector<uint64_t>> FindChanges(std::span<const gpu::Range> ranges);

  // Copies `count` lines of `words` words of 8 bytes each; `lines` is a table of gpu::Line on the
  // device. One launch: what else works there cannot go on for long before it is seen.
  Result<void> CopyLines(cuda::Pointer lines, int count, int words);

  // Comparisons whose `rows` and `totals` are not set; what they come to, one by one.
  struct Compared {
    bool within = false;  // false: the host must look at them; nothing else is known then
    double norm = 0, element = 0, max_abs = 0;
  };
  Result<std::vector<Compared>> Compare(std::span<const gpu::Comparison> comparisons);

  // Comparisons with float64 whose `rows` and `totals` are not set; the measures of ScanErrors
  // (rules/error_scan.h), but that denormals count like all other differences.
  struct Measured {
    double norm = 0, element = 0, max_abs = 0;  // of the candidate
    double reference_norm = 0, reference_element = 0;
    bool kinds_agree = true, reference_kinds_agree = true;
    bool truth_is_finite = true;
    double root_mean_square = 0;  // of the truth
  };
  Result<std::vector<Measured>> CompareWithTruth(std::span<const gpu::TruthComparison> comparisons);

 private:
  enum {
    kFill,
    kFindChange,
    kCompareExactly,
    kRowSums,
    kRowCheck,
    kRowRatio,
    kTruthSums,
    kTruthTotals,
    kTruthErrors,
    kCopyLines,
    kKernels
  };

  explicit JudgeKernels(const Gpu& gpu) : gpu_(&gpu) {}
  // Copies `data` to device memory of this class's own that lives until the next call; its address.
  Result<cuda::Pointer> Upload(const void* data, size_t bytes, size_t zeroed_bytes = 0);
  Result<void> Run(int kernel, std::span<void*> parameters, unsigned tasks);
  // Runs kernels over tasks, one after the other, with zeroes for what their rows and totals hold.
  template <typename Task, typename Totals>
  Result<void> RunBatch(std::span<Task> tasks, std::span<const int> kernels, bool with_rows,
                        std::vector<Totals>* totals);

  const Gpu* gpu_;
  cuda::Module module_ = nullptr;
  cuda::Function functions_[kKernels] = {};
  unsigned blocks_ = 0;
  cuda::Pointer memory_ = 0;
  size_t memory_bytes_ = 0;
};

}  // namespace assay
