#include "toolchain/ncu.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;
using testing::SizeIs;

struct Column {
  const char *name, *unit, *softmax, *gemm;
};
// Of a report by ncu 2025.3.1 of two kernels on an H200, without the columns that nobody reads.
constexpr Column kColumns[] = {
    {"ID", "", "0", "1"},
    {"Process Name", "", "python3.12", "python3.12"},
    {"Kernel Name", "", "_Z7softmaxILi256EEvPKfPf", "gemm"},
    {"Block Size", "", "(1024, 1, 1)", "(256, 1, 1)"},
    {"Device", "", "0", "0"},
    {"gpc__cycles_elapsed.max", "cycle", "107,875", "5,307,249"},
    {"dram__bytes.sum", "byte", "113,776,128", "396,553,984"},
    {"dram__throughput.avg.pct_of_peak_sustained_elapsed", "%", "43.59", "3.07"},
    {"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "%", "43.59", "59.39"},
    {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", "", "1,961", "0"},
    {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum", "", "3,336", "0"},
    {"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", "", "2,574,265", "412,552,192"},
    {"lts__t_sector_hit_rate.pct", "%", "50.70", "89.75"},
    {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", "%", "2.43", "0.00"},
    {"sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", "70.05", "86.79"},
    {"sm__warps_active.avg.pct_of_peak_sustained_active", "%", "93.09", "12.50"},
    {"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", "inst", "3.01", "0.11"},
    {"smsp__average_warps_issue_stalled_branch_resolving_per_issue_active.ratio", "inst", "0.53",
     "0.00"},
    {"smsp__average_warps_issue_stalled_dispatch_stall_per_issue_active.ratio", "inst", "0.85",
     "0.10"},
    {"smsp__average_warps_issue_stalled_drain_per_issue_active.ratio", "inst", "0.08", "0.00"},
    {"smsp__average_warps_issue_stalled_gmma_per_issue_active.ratio", "inst", "0", "0"},
    {"smsp__average_warps_issue_stalled_imc_miss_per_issue_active.ratio", "inst", "0.03", "0.00"},
    {"smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio", "inst", "0.00", "0"},
    {"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", "inst", "3.08",
     "0.02"},
    {"smsp__average_warps_issue_stalled_math_pipe_throttle_per_issue_active.ratio", "inst", "1.02",
     "0.00"},
    {"smsp__average_warps_issue_stalled_membar_per_issue_active.ratio", "inst", "0", "0"},
    {"smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio", "inst", "0.84",
     "0.00"},
    {"smsp__average_warps_issue_stalled_no_instruction_per_issue_active.ratio", "inst", "0.16",
     "0.02"},
    {"smsp__average_warps_issue_stalled_not_selected_per_issue_active.ratio", "inst", "5.56",
     "0.75"},
    {"smsp__average_warps_issue_stalled_selected_per_issue_active.ratio", "inst", "1.00", "1.00"},
    {"smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio", "inst", "2.00",
     "0.21"},
    {"smsp__average_warps_issue_stalled_sleeping_per_issue_active.ratio", "inst", "0", "0"},
    {"smsp__average_warps_issue_stalled_tex_throttle_per_issue_active.ratio", "inst", "0", "0"},
    {"smsp__average_warps_issue_stalled_wait_per_issue_active.ratio", "inst", "2.15", "0.01"},
    {"smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct", "%", "100", "0"},
    {"smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct", "%", "100", "100"},
};

std::string Line(const char* Column::*cell) {
  std::string line;
  for (const Column& column : kColumns)
    line += std::string(line.empty() ? "" : ",") + "\"" + column.*cell + "\"";
  return line + "\n";
}
const std::string kPreamble =
    "==WARNING== Note: Running with unmodified GPU clocks. If not controlled otherwise, profiling "
    "results may be inconsistent.\n==PROF== Connected to process 630 (/assay/native_host)\n"
    "==PROF== Disconnected from process 630\n";

std::string Report(const std::vector<const char * Column::*>& launches) {
  std::string report = kPreamble + Line(&Column::name) + Line(&Column::unit);
  for (const auto launch : launches) report += Line(launch);
  return report;
}

TEST(NcuReport, AnH200sIsRead) {
  const auto kernels = ReadNcuReport(Report({&Column::softmax, &Column::gemm}));
  ASSERT_TRUE(kernels) << kernels.error();
  ASSERT_THAT(*kernels, SizeIs(2));
  const KernelProfile& gemm = (*kernels)[0];
  EXPECT_EQ(gemm.name, "gemm");
  EXPECT_NEAR(gemm.cycles_share, 5307249.0 / (5307249 + 107875), 1e-12);
  EXPECT_EQ(gemm.load_used_percent, std::nullopt);  // it has no such loads
  EXPECT_EQ(gemm.store_used_percent, 100);
  EXPECT_EQ(gemm.conflict_percent, 0);
  const KernelProfile& softmax = (*kernels)[1];
  EXPECT_EQ(softmax.name, "softmax<256>");
  EXPECT_EQ(softmax.launches, 1);
  EXPECT_EQ(softmax.dram_percent, 43.59);
  EXPECT_EQ(softmax.memory_percent, 43.59);
  EXPECT_EQ(softmax.sm_percent, 70.05);
  EXPECT_EQ(softmax.tensor_percent, 2.43);
  EXPECT_EQ(softmax.dram_bytes, 113776128);
  EXPECT_EQ(softmax.l2_hit_percent, 50.70);
  EXPECT_EQ(softmax.load_used_percent, 100);
  EXPECT_EQ(softmax.warps_active_percent, 93.09);
  EXPECT_NEAR(*softmax.conflict_percent, 100 * 5297 / 2574265.0, 1e-12);
  EXPECT_THAT(softmax.stalls, ElementsAre(Key("barrier"), Key("long_scoreboard"), Key("wait")));
  EXPECT_NEAR(softmax.stalls.at("long_scoreboard"), 100 * 3.08 / 13.75, 1e-9);
}

// Figures that are shares are means by cycles, bytes are sums.
TEST(NcuReport, LaunchesOfOneKernelAreTogether) {
  std::string report = Report({&Column::softmax, &Column::softmax, &Column::gemm});
  const size_t last = report.rfind("\"gemm\"");
  report.replace(last, 6, "\"_Z7softmaxILi256EEvPKfPf\"");
  const auto kernels = ReadNcuReport(report).value();
  ASSERT_THAT(kernels, SizeIs(1));
  EXPECT_EQ(kernels[0].launches, 3);
  EXPECT_NEAR(kernels[0].cycles_share, 1, 1e-12);
  EXPECT_EQ(kernels[0].dram_bytes, 2 * 113776128 + 396553984.0);
  EXPECT_NEAR(*kernels[0].dram_percent,
              (2 * 43.59 * 107875 + 3.07 * 5307249) / (2 * 107875 + 5307249), 1e-9);
}

TEST(NcuReport, WhatIsNotThereIsAbsent) {
  const auto kernels = ReadNcuReport(
      "\"ID\",\"Kernel Name\",\"dram__bytes.sum\",\"lts__t_sector_hit_rate.pct\"\n"
      "\"\",\"\",\"byte\",\"%\"\n"
      "\"0\",\"say \"\"hi\"\", twice\",\"n/a\",\"nan\"\n");
  ASSERT_TRUE(kernels) << kernels.error();
  EXPECT_EQ((*kernels)[0].name, "say \"hi\", twice");
  for (const KernelFigure& figure : kKernelFigures)
    EXPECT_EQ((*kernels)[0].*figure.value, std::nullopt) << figure.name;
  EXPECT_TRUE((*kernels)[0].stalls.empty());
}

TEST(NcuReport, ADamagedOneIsNoProfile) {
  const std::string report = Report({&Column::softmax});
  EXPECT_EQ(ReadNcuReport(report.substr(0, report.size() - 40)).error(),
            "ncu's report was cut short");
  EXPECT_EQ(ReadNcuReport(kPreamble).error(), "ncu wrote no report");
  EXPECT_EQ(ReadNcuReport("").error(), "ncu wrote no report");
  EXPECT_EQ(ReadNcuReport("\"ID\",\"Process ID\"\n").error(), "ncu's report names no kernels");
  EXPECT_EQ(ReadNcuReport(std::string(9 << 20, 'x')).error(), "ncu's report is too long");
}

TEST(NcuReport, TheReasonIsSaid) {
  EXPECT_THAT(
      ReadNcuReport(kPreamble + "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to "
                                "access NVIDIA GPU Performance Counters on the target device 0.\n")
          .error(),
      HasSubstr("NVreg_RestrictProfilingToAdminUsers=0"));
  EXPECT_EQ(ReadNcuReport(kPreamble + "==WARNING== No kernels were profiled.\n").error(),
            "the call launched no kernel");
  EXPECT_EQ(NcuTrouble("hello\n==ERROR== --kill cannot be used when launch count is zero.\n"),
            "ncu says: --kill cannot be used when launch count is zero.");
  EXPECT_EQ(NcuTrouble("==ERROR== An error was reported by the driver:\n==ERROR== \n"
                       "==ERROR== out of memory\n"),
            "ncu says: An error was reported by the driver: out of memory");
  EXPECT_EQ(NcuTrouble("hello\n"), "");
}

TEST(NcuCommand, LooksAtTheCallAloneAndTouchesNoClock) {
  const auto command = NcuCommand("/opt/ncu", "/tmp/report", {"/assay/native_host", "x"});
  EXPECT_EQ(command.front(), "/bin/sh");
  EXPECT_EQ(std::vector<std::string>(command.end() - 2, command.end()),
            std::vector<std::string>({"/assay/native_host", "x"}));
  const auto after = [&](const char* option) {
    const auto at = std::find(command.begin(), command.end(), option);
    return at == command.end() || at + 1 == command.end() ? std::string() : *(at + 1);
  };
  EXPECT_EQ(after("sh"), "/opt/ncu");
  EXPECT_EQ(after("--log-file"), "/tmp/report");
  EXPECT_EQ(after("--clock-control"), "none");
  EXPECT_EQ(after("--profile-from-start"), "off");
  EXPECT_EQ(after("--launch-count"), "64");
  const std::string metrics = after("--metrics");
  EXPECT_EQ(metrics.find("time"), std::string::npos);  // a replay's would be a lie
  for (const Column& column : kColumns) {
    const std::string name = column.name;
    if (name.find("__") != std::string::npos && name.find("selected") == std::string::npos) {
      EXPECT_THAT(metrics, HasSubstr(name));
    }
  }
}

}  // namespace
}  // namespace assay
