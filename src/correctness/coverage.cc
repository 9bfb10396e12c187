#include "correctness/coverage.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "base/clock.h"
#include "base/trace.h"
#include "rules/audit_findings.h"

namespace assay {
namespace {

using wire::DrawKind;

// The draws in the order in which they are tried: what shows most comes first.
std::vector<size_t> OrderOf(const DrawSet& draws, const CompareRule& rule) {
  std::vector<size_t> order;
  const auto add = [&](auto&& wanted) {
    for (size_t i = 0; i < draws.draws().size(); ++i)
      if (!draws.draws()[i].dropped && wanted(draws.draws()[i].kind)) order.push_back(i);
  };
  add([](DrawKind kind) { return kind == DrawKind::kOrdinary; });
  add([](DrawKind kind) { return kind == DrawKind::kSigns; });
  add([&](DrawKind kind) {
    return kind != DrawKind::kOrdinary && kind != DrawKind::kSigns &&
           (kind != DrawKind::kSpecialValues || rule.special_values);
  });
  return order;
}

// The first mutant of each operator, then the second, and so on.
std::vector<size_t> FirstOfEach(const std::vector<MutantRecord>& mutants) {
  std::map<int, int> of_operator;
  std::vector<int> rank;
  for (const MutantRecord& mutant : mutants) rank.push_back(of_operator[mutant.operator_number]++);
  std::vector<size_t> order(mutants.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t mutant) { return rank[mutant]; });
  return order;
}

}  // namespace

HostResult<OperatorCoverage> CoverageOf(const MutantCatalog& catalog, const CoverageSteps& steps) {
  std::vector<MutantRecord> mutants = catalog.mutants;
  std::vector<bool> changed(mutants.size()), left(mutants.size());
  const std::vector<size_t> order = FirstOfEach(mutants);
  bool any = !mutants.empty();
  for (size_t draw = 0; draw < steps.draws && any; ++draw) {
    if (!steps.is_over())
      if (auto shown = steps.show(draw); !shown) return std::unexpected(shown.error());
    any = false;
    for (const size_t m : order) {
      if (mutants[m].result == MutantResult::kKilled || left[m]) continue;
      if (steps.is_over()) {
        left[m] = true;
        continue;
      }
      const auto ran = steps.run(m);
      if (!ran) return std::unexpected(ran.error());
      changed[m] = changed[m] || ran->changed;
      if (!ran->passed) mutants[m].result = MutantResult::kKilled;
      any = any || ran->passed;
    }
  }
  std::vector<bool> not_tried(catalog.operators.size());
  std::vector<double> saved(catalog.operators.size());  // by survivors, the most
  for (size_t m = 0; m < mutants.size(); ++m) {
    if (mutants[m].result == MutantResult::kKilled) continue;
    if (left[m] && mutants[m].operator_number >= 0)
      not_tried[static_cast<size_t>(mutants[m].operator_number)] = true;
    if (left[m] || !changed[m]) mutants[m].result = MutantResult::kEquivalent;
    if (mutants[m].result == MutantResult::kEquivalent || mutants[m].operator_number < 0) continue;
    double& most = saved[static_cast<size_t>(mutants[m].operator_number)];
    most = std::max(most, catalog.time_shares[m]);
  }
  std::vector<OperatorRecord> operators = catalog.operators;
  CoverOperators(mutants, &operators);
  OperatorCoverage coverage;
  for (size_t i = 0; i < operators.size(); ++i) {
    const OperatorRecord& one = operators[i];
    const bool unseen = one.result == OperatorResult::kUnseen;
    if (one.result == OperatorResult::kRedundant && !not_tried[i]) continue;
    ++coverage.operators;
    if (unseen)
      coverage.unseen.push_back({one.name, one.line, one.mutant, saved[i]});
    else if (not_tried[i])
      ++coverage.not_tried;
    else
      ++coverage.seen;
  }
  return coverage;
}

HostResult<std::optional<OperatorCoverage>> LookAtOperators(Oracle& oracle, const DrawSet& draws,
                                                            const CompareRule& rule,
                                                            double seconds) {
  // A list of mutants takes about three calls, and each mutant one.
  constexpr double kDrawsLeast = 4;
  const std::vector<size_t> order = OrderOf(draws, rule);
  if (oracle.on_device() || oracle.slots_max() < 2 || oracle.description().own_check ||
      !draws.degenerate().empty() || order.empty() || kDrawsLeast * draws.draw_s() > seconds)
    return std::nullopt;
  const Span span("coverage of operators");
  const int64_t end_ns = MonotonicNs() + static_cast<int64_t>(seconds * 1e9);
  const auto first = draws.Master(oracle, order.front());
  if (!first) return std::unexpected(first.error());
  const auto text = oracle.ListMutants(*first, Oracle::Mutants::kOperators);
  if (!text) return std::unexpected(text.error());
  const auto catalog = ParseMutants(*text);
  if (!catalog) return HostFailed(HostTrouble::Kind::kEnvironment, catalog.error().message);
  uint32_t master = *first;
  size_t shown = 0;
  CoverageSteps steps;
  steps.draws = order.size();
  steps.show = [&](size_t draw) -> HostResult<void> {
    shown = order[draw];
    const auto made = draws.Master(oracle, shown);
    if (!made) return std::unexpected(made.error());
    master = *made;
    return {};
  };
  steps.run = [&](size_t mutant) -> HostResult<MutantOnDraw> {
    const auto found = CheckMutant(oracle, mutant, master, DrawKindName(draws.draws()[shown].kind),
                                   rule, draws.reference_errors());
    if (!found) return std::unexpected(found.error());
    return MutantOnDraw{found->changed, found->check.passed};
  };
  steps.is_over = [&] { return MonotonicNs() >= end_ns; };
  auto coverage = CoverageOf(*catalog, steps);
  if (!coverage) return std::unexpected(coverage.error());
  return std::move(*coverage);
}

}  // namespace assay
