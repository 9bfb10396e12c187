#include "gpu/judge_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.h"
#include "wire/device_image.h"

namespace assay {

using gpu::Comparison;
using gpu::ElementType;
using gpu::Range;
using gpu::Totals;
using gpu::TruthComparison;
using gpu::TruthTotals;
using gpu::VariedTensor;

namespace {

constexpr const char* kNames[] = {"assay_fill",       "assay_find_change",  "assay_compare_exactly",
                                  "assay_row_sums",   "assay_row_check",    "assay_row_ratio",
                                  "assay_truth_sums", "assay_truth_totals", "assay_truth_errors",
                                  "assay_copy_lines", "assay_vary",         "assay_compare_varied"};
constexpr unsigned kThreads = 256;
constexpr unsigned kBlocksPerMultiprocessor = 8;
constexpr unsigned kTasksMax = 65535;  // a grid's y
constexpr size_t kAlignment = 256;

bool IsExact(ElementType type) { return type == ElementType::kBytes || type == ElementType::kBool; }

double FromBits(unsigned long long bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

double Relative(double difference2, double truth2) {
  if (difference2 == 0) return 0;
  return truth2 > 0 ? std::sqrt(difference2 / truth2) : std::numeric_limits<double>::infinity();
}

// As judge/error_scan's cheap scan concludes.
JudgeKernels::Compared Conclude(const Totals& totals, ElementType type) {
  JudgeKernels::Compared compared;
  if (totals.beyond != 0) return compared;
  compared.within = true;
  if (IsExact(type)) return compared;
  compared.max_abs = FromBits(totals.difference_max);
  compared.element = FromBits(totals.element);
  const bool safe =
      type != ElementType::kFloat64 || (totals.reference2 > 1e-200 && totals.reference2 < 1e200);
  if (compared.max_abs > 0 && !safe) return JudgeKernels::Compared{};
  compared.norm = Relative(totals.difference2, totals.reference2);
  return compared;
}

JudgeKernels::Measured Conclude(const TruthTotals& totals, long long elements) {
  JudgeKernels::Measured measured;
  measured.norm = Relative(totals.candidate2, totals.truth2);
  measured.reference_norm = Relative(totals.reference2, totals.truth2);
  measured.element = FromBits(totals.candidate_element);
  measured.reference_element = FromBits(totals.reference_element);
  measured.kinds_agree = totals.candidate_differs == 0;
  measured.reference_kinds_agree = totals.reference_differs == 0;
  measured.max_abs = measured.kinds_agree ? FromBits(totals.candidate_max)
                                          : std::numeric_limits<double>::infinity();
  measured.truth_is_finite = totals.finite == static_cast<unsigned long long>(elements);
  if (totals.finite > 0)
    measured.root_mean_square = std::sqrt(totals.truth2 / static_cast<double>(totals.finite));
  return measured;
}

}  // namespace

std::span<const char* const> JudgeKernelNames() { return kNames; }

Result<JudgeKernels> JudgeKernels::Load(const Gpu& gpu, const std::string& image) {
  static_assert(std::size(kNames) == kKernels);
  wire::DeviceImage read;
  if (!wire::ReadDeviceImage(image.data(), image.size(), &read) || read.kernel_count != kKernels)
    return EnvironmentError("the judge's own kernels are damaged");
  JudgeKernels kernels(gpu);
  const cuda::Driver& driver = gpu.driver();
  ASSAY_RETURN_IF_ERROR(
      gpu.Check(driver.module_load(&kernels.module_, read.cubin), "load the judge's own kernels"));
  for (int i = 0; i < kKernels; ++i)
    ASSAY_RETURN_IF_ERROR(gpu.Check(
        driver.module_function(&kernels.functions_[i], kernels.module_, read.kernels[i].name),
        fmt::format("find the judge's own kernel {}", kNames[i])));
  kernels.blocks_ =
      kBlocksPerMultiprocessor * static_cast<unsigned>(std::max(1, gpu.facts().multiprocessors));
  return kernels;
}

JudgeKernels::JudgeKernels(JudgeKernels&& other) noexcept
    : gpu_(other.gpu_),
      module_(std::exchange(other.module_, nullptr)),
      blocks_(other.blocks_),
      memory_(std::exchange(other.memory_, 0)),
      memory_bytes_(std::exchange(other.memory_bytes_, 0)) {
  std::copy(std::begin(other.functions_), std::end(other.functions_), functions_);
}

JudgeKernels::~JudgeKernels() {
  if (memory_ != 0) gpu_->driver().memory_free(memory_);
  if (module_ != nullptr) gpu_->driver().module_unload(module_);
}

Result<cuda::Pointer> JudgeKernels::Upload(const void* data, size_t bytes, size_t zeroed_bytes) {
  const cuda::Driver& driver = gpu_->driver();
  const size_t first = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const size_t needed = first + (zeroed_bytes + 3) / 4 * 4;
  if (needed > memory_bytes_) {
    if (memory_ != 0) driver.memory_free(memory_);
    memory_ = 0;
    memory_bytes_ = 0;
    ASSAY_RETURN_IF_ERROR(
        gpu_->Check(driver.memory_allocate(&memory_, 2 * needed), "take memory for comparisons"));
    memory_bytes_ = 2 * needed;
  }
  if (zeroed_bytes > 0)
    ASSAY_RETURN_IF_ERROR(
        gpu_->Check(driver.set_words(memory_ + first, 0, (needed - first) / 4, nullptr),
                    "clear memory for comparisons"));
  ASSAY_RETURN_IF_ERROR(
      gpu_->Check(driver.copy_to_device(memory_, data, bytes, nullptr), "copy to the GPU"));
  return memory_;
}

Result<void> JudgeKernels::Run(int kernel, std::span<void*> parameters, unsigned tasks) {
  cuda::LaunchConfig config;
  config.grid_x = std::max(1u, blocks_ / tasks);
  config.grid_y = tasks;
  config.block_x = kThreads;
  return gpu_->Check(gpu_->driver().launch(&config, functions_[kernel], parameters.data(), nullptr),
                     fmt::format("run the judge's own kernel {}", kNames[kernel]));
}

Result<void> JudgeKernels::Fill(std::span<const Range> ranges) {
  for (size_t done = 0; done < ranges.size(); done += kTasksMax) {
    const auto part = ranges.subspan(done, std::min<size_t>(kTasksMax, ranges.size() - done));
    ASSAY_ASSIGN_OR_RETURN(cuda::Pointer tasks, Upload(part.data(), part.size_bytes()));
    int count = static_cast<int>(part.size());
    void* parameters[] = {&tasks, &count};
    ASSAY_RETURN_IF_ERROR(Run(kFill, parameters, static_cast<unsigned>(count)));
    ASSAY_RETURN_IF_ERROR(gpu_->Synchronize());
  }
  return {};
}

Result<void> JudgeKernels::CopyLines(cuda::Pointer lines, int count, int words) {
  if (count == 0) return {};
  void* parameters[] = {&lines, &count, &words};
  ASSAY_RETURN_IF_ERROR(Run(kCopyLines, parameters, 1));
  return gpu_->Synchronize();
}

Result<void> JudgeKernels::Vary(std::span<const VariedTensor> tensors) {
  for (size_t done = 0; done < tensors.size(); done += kTasksMax) {
    const auto part = tensors.subspan(done, std::min<size_t>(kTasksMax, tensors.size() - done));
    ASSAY_ASSIGN_OR_RETURN(cuda::Pointer tasks, Upload(part.data(), part.size_bytes()));
    int count = static_cast<int>(part.size());
    void* parameters[] = {&tasks, &count};
    ASSAY_RETURN_IF_ERROR(Run(kVary, parameters, static_cast<unsigned>(count)));
    ASSAY_RETURN_IF_ERROR(gpu_->Synchronize());
  }
  return {};
}

Result<bool> JudgeKernels::AreVaried(std::span<const VariedTensor> tensors) {
  for (size_t done = 0; done < tensors.size(); done += kTasksMax) {
    const auto part = tensors.subspan(done, std::min<size_t>(kTasksMax, tensors.size() - done));
    unsigned differs = 0;
    ASSAY_ASSIGN_OR_RETURN(cuda::Pointer tasks,
                           Upload(part.data(), part.size_bytes(), sizeof differs));
    cuda::Pointer found = tasks + (part.size_bytes() + kAlignment - 1) / kAlignment * kAlignment;
    int count = static_cast<int>(part.size());
    void* parameters[] = {&tasks, &found, &count};
    ASSAY_RETURN_IF_ERROR(Run(kCompareVaried, parameters, static_cast<unsigned>(count)));
    ASSAY_RETURN_IF_ERROR(gpu_->CopyToHost(&differs, found, sizeof differs));
    if (differs != 0) return false;
  }
  return true;
}

Result<std::vector<uint64_t>> JudgeKernels::FindChanges(std::span<const Range> ranges) {
  std::vector<uint64_t> found;
  for (size_t done = 0; done < ranges.size(); done += kTasksMax) {
    const auto part = ranges.subspan(done, std::min<size_t>(kTasksMax, ranges.size() - done));
    std::vector<unsigned long long> words;
    for (const Range& range : part) words.push_back(range.words);
    std::vector<std::byte> bytes(words.size() * sizeof words[0] + part.size_bytes());
    std::memcpy(bytes.data(), words.data(), words.size() * sizeof words[0]);
    std::memcpy(bytes.data() + words.size() * sizeof words[0], part.data(), part.size_bytes());
    ASSAY_ASSIGN_OR_RETURN(cuda::Pointer first, Upload(bytes.data(), bytes.size()));
    cuda::Pointer tasks = first + words.size() * sizeof words[0];
    int count = static_cast<int>(part.size());
    void* parameters[] = {&tasks, &first, &count};
    ASSAY_RETURN_IF_ERROR(Run(kFindChange, parameters, static_cast<unsigned>(count)));
    ASSAY_RETURN_IF_ERROR(gpu_->CopyToHost(words.data(), first, words.size() * sizeof words[0]));
    found.insert(found.end(), words.begin(), words.end());
  }
  return found;
}

// Device memory: the tasks, then zeroes for the totals and all rows.
template <typename Task, typename TotalsOfTask>
Result<void> JudgeKernels::RunBatch(std::span<Task> tasks, std::span<const int> kernels,
                                    bool with_rows, std::vector<TotalsOfTask>* totals) {
  size_t rows = 0;
  if (with_rows)
    for (const Task& task : tasks) rows += static_cast<size_t>(task.elements / task.row_elements);
  const size_t totals_bytes = tasks.size() * sizeof(TotalsOfTask);
  // The addresses go into the tasks, and are known once the memory is there: it is taken first.
  ASSAY_ASSIGN_OR_RETURN(cuda::Pointer first,
                         Upload(tasks.data(), tasks.size_bytes(),
                                totals_bytes + rows * sizeof *std::declval<Task>().rows));
  const cuda::Pointer zeroes =
      first + (tasks.size_bytes() + kAlignment - 1) / kAlignment * kAlignment;
  auto* device_totals = reinterpret_cast<TotalsOfTask*>(zeroes);
  auto* device_rows = reinterpret_cast<decltype(Task::rows)>(zeroes + totals_bytes);
  for (Task& task : tasks) {
    task.totals = device_totals++;
    task.rows = device_rows;
    if (with_rows) device_rows += task.elements / task.row_elements;
  }
  ASSAY_RETURN_IF_ERROR(
      gpu_->Check(gpu_->driver().copy_to_device(first, tasks.data(), tasks.size_bytes(), nullptr),
                  "copy to the GPU"));
  int count = static_cast<int>(tasks.size());
  void* parameters[] = {&first, &count};
  for (const int kernel : kernels)
    ASSAY_RETURN_IF_ERROR(Run(kernel, parameters, static_cast<unsigned>(tasks.size())));
  totals->resize(tasks.size());
  return gpu_->CopyToHost(totals->data(), zeroes, totals_bytes);
}

Result<std::vector<JudgeKernels::Compared>> JudgeKernels::Compare(
    std::span<const Comparison> comparisons) {
  std::vector<Compared> compared(comparisons.size());
  for (const bool exact : {false, true}) {
    std::vector<size_t> indices;
    std::vector<Comparison> tasks;
    for (size_t i = 0; i < comparisons.size(); ++i) {
      const Comparison& task = comparisons[i];
      if (IsExact(task.type) != exact) continue;
      ASSAY_CHECK(task.row_elements > 0 && task.elements % task.row_elements == 0);
      indices.push_back(i);
      tasks.push_back(task);
    }
    for (size_t done = 0; done < tasks.size(); done += kTasksMax) {
      const auto part =
          std::span(tasks).subspan(done, std::min<size_t>(kTasksMax, tasks.size() - done));
      std::vector<Totals> totals;
      constexpr int kExactly[] = {kCompareExactly};
      constexpr int kByRows[] = {kRowSums, kRowCheck, kRowRatio};
      ASSAY_RETURN_IF_ERROR(
          RunBatch(part, exact ? std::span<const int>(kExactly) : std::span<const int>(kByRows),
                   !exact, &totals));
      for (size_t i = 0; i < part.size(); ++i)
        compared[indices[done + i]] = Conclude(totals[i], part[i].type);
    }
  }
  return compared;
}

Result<std::vector<JudgeKernels::Measured>> JudgeKernels::CompareWithTruth(
    std::span<const TruthComparison> comparisons) {
  std::vector<Measured> measured;
  std::vector<TruthComparison> tasks(comparisons.begin(), comparisons.end());
  for (const TruthComparison& task : tasks)
    ASSAY_CHECK(task.row_elements > 0 && task.elements % task.row_elements == 0 &&
                !IsExact(task.type) && task.type != ElementType::kFloat64);
  for (size_t done = 0; done < tasks.size(); done += kTasksMax) {
    const auto part =
        std::span(tasks).subspan(done, std::min<size_t>(kTasksMax, tasks.size() - done));
    std::vector<TruthTotals> totals;
    constexpr int kAgainstTruth[] = {kTruthSums, kTruthTotals, kTruthErrors};
    ASSAY_RETURN_IF_ERROR(RunBatch(part, kAgainstTruth, true, &totals));
    for (size_t i = 0; i < part.size(); ++i)
      measured.push_back(Conclude(totals[i], part[i].elements));
  }
  return measured;
}

}  // namespace assay
