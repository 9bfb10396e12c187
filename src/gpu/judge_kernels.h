// The judge's kernels on its GPU: the work of the SIMD loops in values/slot_layout and
// rules/error_scan, on device memory. Each call returns when its work is done. Use from one thread.
// Errors: kEnvironment.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/gpu.h"
#include "gpu/judge_tasks.h"

namespace assay {

// Names of the kernels in gpu/judge_kernels.cu, in the order in which an image must hold them.
std::span<const char* const> JudgeKernelNames();

class JudgeKernels {
 public:
  // `image`: a device image (wire/device_image.h) of those kernels. `gpu` must outlive this.
  static Result<JudgeKernels> Load(const Gpu& gpu, const std::string& image);
  JudgeKernels(JudgeKernels&& other) noexcept;
  JudgeKernels& operator=(JudgeKernels&&) = delete;
  ~JudgeKernels();

  // Fills ranges with their patterns.
  Result<void> Fill(std::span<const gpu::Range> ranges);
  // Returns, for each range, the index of its first word that is not the pattern; its number of
  // words if there is none.
  Result<std::vector<uint64_t>> FindChanges(std::span<const gpu::Range> ranges);

  // Copies `count` lines of `words` words of 8 bytes each; `lines` is a table of gpu::Line on the
  // device. One launch, to leave other work on the device little time before the copy.
  Result<void> CopyLines(cuda::Pointer lines, int count, int words);

  // Writes the copies of tensors; AreVaried returns true if they still are so.
  Result<void> Vary(std::span<const gpu::VariedTensor> tensors);
  Result<bool> AreVaried(std::span<const gpu::VariedTensor> tensors);

  // Compares outputs; the `rows` and `totals` of `comparisons` need not be set. Returns one result
  // for each.
  struct Compared {
    bool within = false;  // false: the host must compare them; the other members mean nothing
    double norm = 0, element = 0, max_abs = 0;
  };
  Result<std::vector<Compared>> Compare(std::span<const gpu::Comparison> comparisons);

  // The same against float64. The measures are those of ScanErrors (rules/error_scan.h), except
  // that denormals count like all other differences.
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
    kVary,
    kCompareVaried,
    kKernels
  };

  explicit JudgeKernels(const Gpu& gpu) : gpu_(&gpu) {}
  // Copies `data` to device memory that is valid until the next call; returns its address.
  // `zeroed_bytes` of zeroes follow, aligned.
  Result<cuda::Pointer> Upload(const void* data, size_t bytes, size_t zeroed_bytes = 0);
  Result<void> Run(int kernel, std::span<void*> parameters, unsigned tasks);
  // Runs the kernels over the tasks, one after the other. Rows and totals start as zeroes.
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
