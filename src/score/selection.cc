#include "score/selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "model/gradients.h"

namespace assay {
namespace {

using Verdicts = std::vector<const Verdict*>;

constexpr size_t kNamedMax = 5;  // of what a message lists

// "a, b, c and 4 more".
std::string Listed(const std::vector<std::string>& names, std::string_view separator) {
  const size_t count = std::min(names.size(), kNamedMax);
  std::string text = fmt::format(
      "{}", fmt::join(names.begin(), names.begin() + static_cast<ptrdiff_t>(count), separator));
  if (names.size() > count) text += fmt::format("{}{} more", separator, names.size() - count);
  return text;
}

bool IsAgainstCandidate(const Verdict& verdict) {
  return verdict.speed && (verdict.speed->against || verdict.speed->headline == "against");
}

// Those of problems that are asked for, measured against a reference.
Verdicts WantedOf(const std::vector<Verdict>& verdicts, const SelectionRules& rules,
                  SetAside* set_aside) {
  std::set<std::string_view> asked;
  for (const AskedProblem& problem : rules.asked) asked.insert(problem.name);
  std::set<std::string> strangers;
  Verdicts wanted;
  for (const Verdict& verdict : verdicts) {
    if (!asked.empty() && !asked.contains(verdict.problem.name)) {
      ++set_aside->not_asked;
      strangers.insert(verdict.problem.name);
    } else if (IsAgainstCandidate(verdict)) {
      ++set_aside->against;
    } else {
      wanted.push_back(&verdict);
    }
  }
  set_aside->problems_not_asked.assign(strangers.begin(), strangers.end());
  return wanted;
}

// ISO 8601 in UTC sorts as text, but for the Z after fractions of a second.
std::string_view SortableTime(const Verdict& verdict) {
  std::string_view time = verdict.created;
  if (time.ends_with('Z')) time.remove_suffix(1);
  return time;
}

// The latest of those with the same key, in the order of the first; of equal times, the last read.
template <typename KeyOf>
Verdicts LatestBy(const Verdicts& verdicts, KeyOf key_of) {
  std::map<decltype(key_of(*verdicts.front())), size_t> place_of;
  Verdicts latest;
  for (const Verdict* verdict : verdicts) {
    const auto [place, fresh] = place_of.try_emplace(key_of(*verdict), latest.size());
    if (fresh)
      latest.push_back(verdict);
    else if (SortableTime(*verdict) >= SortableTime(*latest[place->second]))
      latest[place->second] = verdict;
  }
  return latest;
}

Verdicts WithoutRepeats(Verdicts verdicts, SetAside* set_aside) {
  const size_t count = verdicts.size();
  if (count == 0) return verdicts;
  verdicts =
      LatestBy(verdicts, [](const Verdict& verdict) { return std::string_view(verdict.id); });
  verdicts = LatestBy(verdicts, [](const Verdict& verdict) {
    return std::tie(verdict.problem.name, verdict.problem.hash, verdict.problem.set,
                    verdict.candidate.hash);
  });
  set_aside->judged_again = static_cast<int64_t>(count - verdicts.size());
  return verdicts;
}

std::string PyTorchOf(const Verdict& verdict) {
  const auto found = verdict.toolchain.find("pytorch");
  return found == verdict.toolchain.end() ? "unknown" : found->second;
}

// One rule of correctness for all: a kernel that passes a lax tolerance is another kind of correct.
Result<void> CheckRules(const Verdicts& verdicts) {
  std::map<std::string, int64_t> counts;
  for (const Verdict* verdict : verdicts)
    if (verdict->correctness) ++counts[verdict->correctness->tolerance];
  if (counts.size() < 2) return {};
  std::vector<std::string> rules;
  for (const auto& [rule, count] : counts) rules.push_back(fmt::format("{} by {}", count, rule));
  return UsageError(
      fmt::format("the verdicts were judged by different rules of correctness ({}): score those of "
                  "one rule at a time",
                  Listed(rules, ", ")));
}

// A call that gives gradients, too, is other work.
Result<void> CheckGradients(const Verdicts& verdicts) {
  const auto with = std::ranges::count_if(
      verdicts, [](const Verdict* verdict) { return HasGradients(verdict->problem); });
  const auto without = std::ssize(verdicts) - with;
  if (with == 0 || without == 0) return {};
  return UsageError(
      fmt::format("{} of the verdicts are of problems with gradients (--grad), and {} without: "
                  "score one kind at a time. --suite counts those without",
                  with, without));
}

std::string ProcessorsOf(const Machine& machine) {
  return machine.gpu.empty() ? machine.cpu : machine.gpu + ", " + machine.cpu;
}

Result<std::vector<MachineCount>> CountMachines(const Verdicts& verdicts, bool any_machine) {
  std::map<std::tuple<std::string, int, int, std::string>, int64_t> counts;
  for (const Verdict* verdict : verdicts)
    ++counts[{ProcessorsOf(verdict->machine), verdict->machine.cores, verdict->machine.threads,
              PyTorchOf(*verdict)}];
  std::vector<MachineCount> machines;
  for (const auto& [machine, count] : counts)
    machines.push_back({std::get<0>(machine), std::get<1>(machine), std::get<2>(machine),
                        std::get<3>(machine), count});
  std::stable_sort(machines.begin(), machines.end(), [](const auto& left, const auto& right) {
    return left.verdicts > right.verdicts;
  });
  if (machines.size() < 2 || any_machine) return machines;
  std::vector<std::string> lines;
  for (const MachineCount& machine : machines)
    lines.push_back(fmt::format("  {} on {}, cores: {}, threads a side: {}, PyTorch {}",
                                machine.verdicts, machine.cpu, machine.cores, machine.threads,
                                machine.pytorch));
  return UsageError(fmt::format(
      "the verdicts come from {} machines, whose speedups do not compare:\n{}\nscore one machine's "
      "at a time, or give --any-machine",
      machines.size(), Listed(lines, "\n")));
}

std::string DescribeSize(const ProblemRecord& problem) {
  std::vector<std::string> settings;
  for (const auto& [name, value] : problem.set) settings.push_back(name + "=" + value);
  const std::string set = settings.empty() ? "the file's own constants" : Listed(settings, ", ");
  return problem.size.empty() ? set : fmt::format("{} ({})", problem.size, set);
}

Result<void> CheckSizes(const Verdicts& verdicts) {
  std::map<std::string_view, const ProblemRecord*> first_of;
  std::vector<std::string> lines;
  std::set<std::string_view> told;
  for (const Verdict* verdict : verdicts) {
    const ProblemRecord& problem = verdict->problem;
    const ProblemRecord& first = *first_of.try_emplace(problem.name, &problem).first->second;
    const bool other_file = first.hash != problem.hash;
    if ((!other_file && first.set == problem.set) || !told.insert(problem.name).second) continue;
    if (first.set != problem.set)
      lines.push_back(
          fmt::format("  {}: {}; {}", problem.name, DescribeSize(first), DescribeSize(problem)));
    else
      lines.push_back(fmt::format("  {}: two problem files, SHA-256 {:.12} and {:.12}",
                                  problem.name, first.hash, problem.hash));
  }
  if (lines.empty()) return {};
  return UsageError(
      fmt::format("one table would mix sizes or versions of a problem:\n{}\nscore one of them at a "
                  "time, or give --any-size",
                  Listed(lines, "\n")));
}

// The baseline that every measured verdict has; empty where nothing was measured.
Result<std::string> CommonBaseline(const Verdicts& verdicts, const std::string& wanted) {
  std::map<std::string, int64_t> headlines;
  for (const Verdict* verdict : verdicts) {
    if (!verdict->speed) continue;
    ++headlines[verdict->speed->headline];
    if (wanted.empty() || verdict->speed->baselines.contains(wanted)) continue;
    return UsageError(
        fmt::format("verdict {} ({}) was not measured against '{}', only against {}: "
                    "leave out --baseline, or judge it with --baseline {}",
                    verdict->id, verdict->problem.name, wanted, verdict->speed->headline, wanted));
  }
  if (!wanted.empty()) return headlines.empty() ? std::string() : wanted;
  if (headlines.empty()) return std::string();
  if (headlines.size() == 1) return headlines.begin()->first;
  std::vector<std::string> names;
  for (const auto& [name, count] : headlines) names.push_back(fmt::format("{} of {}", count, name));
  return UsageError(
      fmt::format("the verdicts were decided against different baselines ({}): name one that all "
                  "have, as in --baseline {}",
                  Listed(names, ", "), headlines.begin()->first));
}

std::vector<ProblemAttempts> Gathered(const Verdicts& verdicts, const SelectionRules& rules,
                                      const std::string& baseline) {
  std::vector<ProblemAttempts> problems;
  std::map<std::string_view, size_t> place_of;
  for (const AskedProblem& problem : rules.asked) {
    place_of[problem.name] = problems.size();
    problems.push_back({problem, {}});
  }
  for (const Verdict* verdict : verdicts) {
    const ProblemRecord& record = verdict->problem;
    const auto [place, fresh] = place_of.try_emplace(record.name, problems.size());
    if (fresh) problems.push_back({{record.name, record.level, ""}, {}});
    problems[place->second].attempts.push_back(AttemptOf(*verdict, baseline));
  }
  if (rules.asked.empty())
    std::stable_sort(problems.begin(), problems.end(), [](const auto& left, const auto& right) {
      return std::tie(left.problem.level, left.problem.name) <
             std::tie(right.problem.level, right.problem.name);
    });
  return problems;
}

}  // namespace

Result<Selection> SelectVerdicts(const std::vector<Verdict>& verdicts,
                                 const SelectionRules& rules) {
  Selection selection;
  Verdicts kept = WantedOf(verdicts, rules, &selection.set_aside);
  kept = WithoutRepeats(std::move(kept), &selection.set_aside);
  if (kept.empty()) {
    const std::vector<std::string>& strangers = selection.set_aside.problems_not_asked;
    return UsageError(
        strangers.empty()
            ? "there is no verdict to score: judge a candidate first, with assay judge"
            : fmt::format("no verdict is of a problem asked for; there are verdicts of: {}",
                          Listed(strangers, ", ")));
  }
  const auto [first, last] =
      std::minmax_element(kept.begin(), kept.end(), [](const Verdict* one, const Verdict* other) {
        return SortableTime(*one) < SortableTime(*other);
      });
  selection.from = (*first)->created;
  selection.to = (*last)->created;
  ASSAY_ASSIGN_OR_RETURN(selection.machines, CountMachines(kept, rules.any_machine));
  if (!rules.any_size) ASSAY_RETURN_IF_ERROR(CheckSizes(kept));
  ASSAY_RETURN_IF_ERROR(CheckRules(kept));
  ASSAY_RETURN_IF_ERROR(CheckGradients(kept));
  ASSAY_ASSIGN_OR_RETURN(selection.baseline, CommonBaseline(kept, rules.baseline));
  std::ranges::stable_sort(kept, {}, [](const Verdict* each) { return SortableTime(*each); });
  selection.repeats = RepeatsOf(verdicts);
  selection.problems = Gathered(kept, rules, selection.baseline);
  const auto known = static_cast<int64_t>(selection.problems.size());
  selection.asked = rules.asked_count == 0 ? known : rules.asked_count;
  if (selection.asked < known)
    return UsageError(
        fmt::format("there are verdicts of {} problems, more than the {} asked for: "
                    "give --problems the number that was asked for",
                    known, selection.asked));
  return selection;
}

}  // namespace assay
