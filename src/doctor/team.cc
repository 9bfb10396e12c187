#include "doctor/team.h"

#include <algorithm>
#include <barrier>
#include <limits>
#include <thread>

#include "base/clock.h"
#include "machine/machine.h"

namespace assay {

std::vector<double> ShortestSeconds(std::span<const int> cpus, int repeats,
                                    const std::function<Pieces(size_t index)>& make) {
  struct Times {
    std::vector<int64_t> begin_ns, end_ns;  // piece by piece, all repeats of one together
  };
  std::vector<Times> times(cpus.size());
  std::barrier ready(static_cast<std::ptrdiff_t>(cpus.size()));
  const auto member = [&](size_t index) {
    BindThisThread({cpus[index]});
    for (const std::function<void()>& work : make(index)) {
      for (int repeat = 0; repeat < repeats; ++repeat) {
        ready.arrive_and_wait();
        times[index].begin_ns.push_back(MonotonicNs());
        work();
        times[index].end_ns.push_back(MonotonicNs());
      }
    }
  };
  {
    std::vector<std::jthread> team;
    for (size_t index = 0; index < cpus.size(); ++index) team.emplace_back(member, index);
  }
  std::vector<double> shortest(times[0].begin_ns.size() / static_cast<size_t>(repeats),
                               std::numeric_limits<double>::infinity());
  for (size_t run = 0; run < times[0].begin_ns.size(); ++run) {
    int64_t begin_ns = std::numeric_limits<int64_t>::max(), end_ns = 0;
    for (const Times& one : times) {
      begin_ns = std::min(begin_ns, one.begin_ns[run]);
      end_ns = std::max(end_ns, one.end_ns[run]);
    }
    double& piece = shortest[run / static_cast<size_t>(repeats)];
    piece = std::min(piece, static_cast<double>(end_ns - begin_ns) / 1e9);
  }
  return shortest;
}

}  // namespace assay
