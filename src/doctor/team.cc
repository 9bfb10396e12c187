#include "doctor/team.h"

#include <algorithm>
#include <barrier>
#include <limits>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "pipeline/machine.h"

namespace assay {

double ShortestSeconds(std::span<const int> cpus, int repeats,
                       const std::function<std::function<void()>(size_t index)>& make) {
  struct Times {
    std::vector<int64_t> begin_ns, end_ns;
  };
  std::vector<Times> times(cpus.size());
  std::barrier ready(static_cast<std::ptrdiff_t>(cpus.size()));
  const auto member = [&](size_t index) {
    BindThisThread({cpus[index]});
    const std::function<void()> work = make(index);
    for (int repeat = 0; repeat < repeats; ++repeat) {
      ready.arrive_and_wait();
      times[index].begin_ns.push_back(MonotonicNs());
      work();
      times[index].end_ns.push_back(MonotonicNs());
    }
  };
  {
    std::vector<std::jthread> team;
    for (size_t index = 0; index < cpus.size(); ++index) team.emplace_back(member, index);
  }
  int64_t shortest_ns = std::numeric_limits<int64_t>::max();
  for (size_t repeat = 0; repeat < static_cast<size_t>(repeats); ++repeat) {
    int64_t begin_ns = std::numeric_limits<int64_t>::max(), end_ns = 0;
    for (const Times& one : times) {
      begin_ns = std::min(begin_ns, one.begin_ns[repeat]);
      end_ns = std::max(end_ns, one.end_ns[repeat]);
    }
    shortest_ns = std::min(shortest_ns, end_ns - begin_ns);
  }
  return static_cast<double>(shortest_ns) / 1e9;
}

}  // namespace assay
