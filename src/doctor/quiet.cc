#include "doctor/quiet.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "base/clock.h"
#include "base/files.h"

namespace assay {
namespace {

double SecondsOf(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

double BusySeconds(std::string_view stat, std::span<const int> cpus, double ticks) {
  double sum = 0;
  std::istringstream lines{std::string(stat)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft_irq = 0, steal = 0;
    words >> name >> user >> nice >> system >> idle >> wait >> irq >> soft_irq >> steal;
    const auto is_named = [&name](int cpu) { return name == "cpu" + std::to_string(cpu); };
    if (std::ranges::any_of(cpus, is_named)) sum += user + nice + system + irq + soft_irq + steal;
  }
  return sum / ticks;
}

BusyTimes ReadBusyTimes(std::span<const int> cpus) {
  constexpr size_t kBytesMax = 4 << 20;
  BusyTimes times;
  if (const auto stat = ReadFile("/proc/stat", kBytesMax))
    times.all_s = BusySeconds(*stat, cpus, static_cast<double>(::sysconf(_SC_CLK_TCK)));
  rusage own{};
  ::getrusage(RUSAGE_SELF, &own);
  times.own_s = SecondsOf(own.ru_utime) + SecondsOf(own.ru_stime);
  times.at_ns = MonotonicNs();
  return times;
}

double CoresOfOthers(const BusyTimes& begin, const BusyTimes& end) {
  const double seconds = static_cast<double>(end.at_ns - begin.at_ns) / 1e9;
  if (!(seconds > 0)) return 0;
  return std::max(0.0, (end.all_s - begin.all_s - (end.own_s - begin.own_s)) / seconds);
}

bool CeilingsStand(const CeilingSigns& signs, size_t cores) {
  constexpr double kShareMax = 0.05, kProductMax = 1.1;
  return signs.cores_of_others <= kShareMax * static_cast<double>(cores) &&
         signs.product_share <= kProductMax;
}

Result<CeilingSigns> MeasureUntilQuiet(size_t cores,
                                       const std::function<Result<CeilingSigns>()>& measure) {
  constexpr int kTries = 3;
  CeilingSigns signs;
  for (int i = 0; i < kTries; ++i) {
    ASSAY_ASSIGN_OR_RETURN(signs, measure());
    if (CeilingsStand(signs, cores)) break;
  }
  return signs;
}

}  // namespace assay
