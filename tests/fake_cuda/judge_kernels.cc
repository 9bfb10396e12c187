// The judge's kernels as a 'cubin' of the fake driver.
#define ASSAY_EMULATED
#include "gpu/judge_kernels.cu"

namespace {
using assay::gpu::Comparison;
using assay::gpu::Line;
using assay::gpu::Range;
using assay::gpu::TruthComparison;
}  // namespace

#define EMULATED_TASKS(name, Task)                                                          \
  ASSAY_FAKE_KERNEL(name##_emulated, sizeof(void*), sizeof(int)) {                          \
    EmulateGrid(launch,                                                                     \
                [&] { name(launch.parameter<const Task*>(0), launch.parameter<int>(1)); }); \
  }

EMULATED_TASKS(assay_fill, Range)
EMULATED_TASKS(assay_compare_exactly, Comparison)
EMULATED_TASKS(assay_row_sums, Comparison)
EMULATED_TASKS(assay_row_check, Comparison)
EMULATED_TASKS(assay_row_ratio, Comparison)
EMULATED_TASKS(assay_truth_sums, TruthComparison)
EMULATED_TASKS(assay_truth_totals, TruthComparison)
EMULATED_TASKS(assay_truth_errors, TruthComparison)
EMULATED_TASKS(assay_vary, VariedTensor)
ASSAY_FAKE_KERNEL(assay_compare_varied_emulated, sizeof(void*), sizeof(void*), sizeof(int)) {
  EmulateGrid(launch, [&] {
    assay_compare_varied(launch.parameter<const VariedTensor*>(0), launch.parameter<unsigned*>(1),
                         launch.parameter<int>(2));
  });
}
ASSAY_FAKE_KERNEL(assay_copy_lines_emulated, sizeof(void*), sizeof(int), sizeof(int)) {
  EmulateGrid(launch, [&] {
    assay_copy_lines(launch.parameter<const Line*>(0), launch.parameter<int>(1),
                     launch.parameter<int>(2));
  });
}
ASSAY_FAKE_KERNEL(assay_find_change_emulated, sizeof(void*), sizeof(void*), sizeof(int)) {
  EmulateGrid(launch, [&] {
    assay_find_change(launch.parameter<const Range*>(0), launch.parameter<unsigned long long*>(1),
                      launch.parameter<int>(2));
  });
}
