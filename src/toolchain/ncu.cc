// Theory of operation. `--page raw --csv` gives lines of the tool's own, which begin with "==",
// then a row of names, a row of units and a row for each launch. Rows have hundreds of columns,
// with every property of the device. The sandbox would cut that from the output, so it goes to a
// file.
#include "toolchain/ncu.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "toolchain/cubin.h"
#include "toolchain/lines.h"

namespace assay {
namespace {

// Weighted by each launch's cycles where a kernel has several.
struct MeanMetric {
  const char* metric;
  std::optional<double> KernelProfile::*value;
};
constexpr MeanMetric kMeans[] = {
    {"dram__throughput.avg.pct_of_peak_sustained_elapsed", &KernelProfile::dram_percent},
    {"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
     &KernelProfile::memory_percent},
    {"sm__throughput.avg.pct_of_peak_sustained_elapsed", &KernelProfile::sm_percent},
    {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
     &KernelProfile::tensor_percent},
    {"lts__t_sector_hit_rate.pct", &KernelProfile::l2_hit_percent},
    {"smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct",
     &KernelProfile::load_used_percent},
    {"smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct",
     &KernelProfile::store_used_percent},
    {"sm__warps_active.avg.pct_of_peak_sustained_active", &KernelProfile::warps_active_percent},
};
constexpr const char* kCycles = "gpc__cycles_elapsed.max";
constexpr const char* kDramBytes = "dram__bytes.sum";
// Loads and stores; the count of all kinds together has what L1 decides between requests, too.
constexpr const char* kLoadConflicts = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum";
constexpr const char* kStoreConflicts = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum";
constexpr const char* kSharedCycles = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum";
// Warps that wait for each reason, for each instruction that is issued. Those that are "selected"
// or "not_selected" could go on.
constexpr const char* kStallReasons[] = {"barrier",
                                         "branch_resolving",
                                         "dispatch_stall",
                                         "drain",
                                         "gmma",
                                         "imc_miss",
                                         "lg_throttle",
                                         "long_scoreboard",
                                         "membar",
                                         "math_pipe_throttle",
                                         "mio_throttle",
                                         "misc",
                                         "no_instruction",
                                         "short_scoreboard",
                                         "sleeping",
                                         "tex_throttle",
                                         "wait"};
constexpr size_t kStallsKept = 3;
constexpr double kStallWorthKeeping = 5;  // percent

constexpr size_t kReasonBytesMax = 300;
constexpr size_t kNameBytesMax = 100;
constexpr size_t kKernelsMax = 32;
// More than a GPU moves in a day; sums of these stay finite.
constexpr double kFigureMax = 1e18;
constexpr size_t kReportBytesMax = size_t{8} << 20;

std::string StallMetric(std::string_view reason) {
  return fmt::format("smsp__average_warps_issue_stalled_{}_per_issue_active.ratio", reason);
}

std::string AllMetrics() {
  std::vector<std::string> metrics{kCycles, kDramBytes, kLoadConflicts, kStoreConflicts,
                                   kSharedCycles};
  for (const MeanMetric& mean : kMeans) metrics.push_back(mean.metric);
  for (const char* reason : kStallReasons) metrics.push_back(StallMetric(reason));
  return fmt::format("{}", fmt::join(metrics, ","));
}

// The fields of a line of CSV, whose quotation marks are doubled inside of fields.
std::vector<std::string> Fields(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += '"';
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

// "1,048,576.5"; nothing for "n/a" and the like.
std::optional<double> Figure(std::string text) {
  std::erase(text, ',');
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || status != std::errc() || end != text.data() + text.size() ||
      !(value >= 0 && value <= kFigureMax))
    return std::nullopt;
  return value;
}

struct LaunchRow {
  std::string kernel;
  std::map<std::string, double> figures;

  std::optional<double> Get(const std::string& metric) const {
    const auto found = figures.find(metric);
    return found == figures.end() ? std::nullopt : std::optional(found->second);
  }
  double cycles() const { return Get(kCycles).value_or(0); }
};

// Means over launches, by cycles; of those that have a figure.
class Mean {
 public:
  void Add(std::optional<double> value, double weight) {
    if (!value) return;
    // Launches without a count of cycles weigh alike.
    weight = std::max(weight, 1.0);
    sum_ += *value * weight;
    weight_ += weight;
  }
  std::optional<double> value() const {
    return weight_ > 0 ? std::optional(sum_ / weight_) : std::nullopt;
  }

 private:
  double sum_ = 0, weight_ = 0;
};

std::optional<double> Sum(const std::vector<const LaunchRow*>& rows, const char* metric) {
  std::optional<double> sum;
  for (const LaunchRow* row : rows)
    if (const auto value = row->Get(metric)) sum = sum.value_or(0) + *value;
  return sum;
}

std::map<std::string, double> LargestStalls(const std::vector<const LaunchRow*>& rows) {
  std::vector<std::pair<double, std::string>> stalls;
  double all = 0;
  for (const char* reason : kStallReasons) {
    Mean mean;
    for (const LaunchRow* row : rows) mean.Add(row->Get(StallMetric(reason)), row->cycles());
    stalls.emplace_back(mean.value().value_or(0), reason);
    all += stalls.back().first;
  }
  std::sort(stalls.rbegin(), stalls.rend());
  std::map<std::string, double> largest;
  for (size_t i = 0; i < kStallsKept; ++i)
    if (all > 0 && 100 * stalls[i].first / all >= kStallWorthKeeping)
      largest[stalls[i].second] = 100 * stalls[i].first / all;
  return largest;
}

KernelProfile Together(const std::vector<const LaunchRow*>& rows, double cycles_of_all) {
  KernelProfile kernel;
  kernel.name = KernelDisplayName(rows.front()->kernel);
  if (kernel.name.size() > kNameBytesMax)
    kernel.name = kernel.name.substr(0, kNameBytesMax) + "...";
  kernel.launches = static_cast<int>(rows.size());
  double cycles = 0;
  for (const LaunchRow* row : rows) cycles += row->cycles();
  kernel.cycles_share = cycles_of_all > 0 ? cycles / cycles_of_all : 0;
  for (const MeanMetric& metric : kMeans) {
    Mean mean;
    for (const LaunchRow* row : rows) mean.Add(row->Get(metric.metric), row->cycles());
    kernel.*metric.value = mean.value();
  }
  kernel.dram_bytes = Sum(rows, kDramBytes);
  const auto shared_cycles = Sum(rows, kSharedCycles);
  if (shared_cycles && *shared_cycles > 0)
    kernel.conflict_percent = std::min(
        100.0,
        100 * (Sum(rows, kLoadConflicts).value_or(0) + Sum(rows, kStoreConflicts).value_or(0)) /
            *shared_cycles);
  // A kernel without such an access is said to use nothing of it.
  for (std::optional<double>* used : {&kernel.load_used_percent, &kernel.store_used_percent})
    if (*used == 0.0) used->reset();
  kernel.stalls = LargestStalls(rows);
  return kernel;
}

std::vector<KernelProfile> Aggregate(const std::vector<LaunchRow>& rows) {
  std::vector<std::string> names;
  std::map<std::string, std::vector<const LaunchRow*>> by_name;
  double cycles = 0;
  for (const LaunchRow& row : rows) {
    auto& launches = by_name[row.kernel];
    if (launches.empty()) names.push_back(row.kernel);
    launches.push_back(&row);
    cycles += row.cycles();
  }
  std::vector<KernelProfile> kernels;
  for (const std::string& name : names) kernels.push_back(Together(by_name[name], cycles));
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const auto& a, const auto& b) { return a.cycles_share > b.cycles_share; });
  return kernels;
}

}  // namespace

std::vector<std::string> NcuCommand(const std::string& ncu, const std::string& report,
                                    const std::vector<std::string>& command) {
  std::vector<std::string> arguments{
      "/bin/sh", "-c", fmt::format("\"$@\" && exit 0; cat {} >&2; exit 1", report), "sh", ncu,
      // What it writes, and where.
      "--log-file", report, "--csv", "--page", "raw", "--print-units", "base",
      "--print-kernel-base", "mangled",
      // What it looks at.
      "--profile-from-start", "off", "--target-processes", "application-only", "--launch-count",
      std::to_string(kProfiledLaunchesMax), "--clock-control", "none", "--cache-control", "all",
      "--metrics", AllMetrics()};
  arguments.insert(arguments.end(), command.begin(), command.end());
  return arguments;
}

std::string NcuTrouble(std::string_view text) {
  if (text.find("ERR_NVGPUCTRPERM") != std::string_view::npos)
    return "the driver lets only administrators read counters: load it with "
           "NVreg_RestrictProfilingToAdminUsers=0 "
           "(https://developer.nvidia.com/ERR_NVGPUCTRPERM says how)";
  if (text.find("No kernels were profiled") != std::string_view::npos)
    return "the call launched no kernel";
  constexpr std::string_view kError = "==ERROR==";
  std::string said;
  while (!text.empty()) {
    const std::string_view line = TrimSpace(TakeLine(text));
    if (!line.starts_with(kError)) continue;
    const std::string_view reason = TrimSpace(line.substr(kError.size()));
    if (!reason.empty()) said.append(said.empty() ? "" : " ").append(reason);
  }
  if (said.empty()) return {};
  return fmt::format("ncu says: {}", said.substr(0, kReasonBytesMax));
}

std::expected<std::vector<KernelProfile>, std::string> ReadNcuReport(std::string_view report) {
  if (report.size() > kReportBytesMax) return std::unexpected("ncu's report is too long");
  std::vector<std::string> names;
  size_t kernel_name = 0;
  std::vector<LaunchRow> rows;
  for (std::string_view left = report; !left.empty();) {
    const std::string_view line = TrimSpace(TakeLine(left));
    if (!line.starts_with('"')) continue;
    std::vector<std::string> fields = Fields(line);
    if (names.empty()) {
      const auto at = std::find(fields.begin(), fields.end(), "Kernel Name");
      if (at == fields.end()) return std::unexpected("ncu's report names no kernels");
      kernel_name = static_cast<size_t>(at - fields.begin());
      names = std::move(fields);
      continue;
    }
    if (fields.size() != names.size()) return std::unexpected("ncu's report was cut short");
    if (fields.front().empty()) continue;  // units
    LaunchRow row{std::move(fields[kernel_name]), {}};
    for (size_t i = 0; i < names.size(); ++i)
      if (const auto value = i == kernel_name ? std::nullopt : Figure(std::move(fields[i])))
        row.figures[names[i]] = *value;
    rows.push_back(std::move(row));
  }
  if (!rows.empty()) return Aggregate(rows);
  const std::string trouble = NcuTrouble(report);
  return std::unexpected(trouble.empty() ? "ncu wrote no report" : trouble);
}

}  // namespace assay
