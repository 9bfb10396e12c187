#include "score/repeats.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

namespace assay {

Repeats RepeatsOf(const std::vector<Verdict>& verdicts) {
  using Key = std::tuple<std::string, std::string, std::map<std::string, std::string>, std::string,
                         std::string, int, int, std::string>;
  std::map<Key, std::vector<const Verdict*>> groups;
  for (const Verdict& verdict : verdicts) {
    if (!verdict.speed || !verdict.speed->baselines.contains(verdict.speed->headline)) continue;
    const BaselineResult& result = verdict.speed->baselines.at(verdict.speed->headline);
    // NaN: too few pairs for an interval.
    if (!(result.ci_low > 0) || !(result.ci_high > 0)) continue;
    const Machine& machine = verdict.machine;
    auto& group =
        groups[{verdict.problem.hash, verdict.candidate.hash, verdict.problem.set, machine.cpu,
                machine.gpu, machine.cores, machine.threads, verdict.speed->headline}];
    const bool read_twice =
        std::ranges::any_of(group, [&](const Verdict* other) { return other->id == verdict.id; });
    if (!read_twice) group.push_back(&verdict);
  }
  Repeats repeats;
  for (auto& [key, group] : groups) {
    std::ranges::stable_sort(group, {}, [](const Verdict* verdict) { return verdict->created; });
    for (size_t i = 1; i < group.size(); ++i) {
      const auto result = [&](size_t at) {
        return group[at]->speed->baselines.at(group[at]->speed->headline);
      };
      ++repeats.pairs;
      if (result(i).ci_low > result(i - 1).ci_high) ++repeats.improved;
    }
  }
  return repeats;
}

}  // namespace assay
