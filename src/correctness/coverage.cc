#include "correctness/coverage.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/trace.h"
#include "rules/audit_findings.h"

namespace assay {
namespace {

using wire::DrawKind;

// Kinds that a few values do not tell, in the order in which they are tried: what shows most comes
// first.
constexpr DrawKind kPlain[] = {DrawKind::kOrdinary, DrawKind::kSigns, DrawKind::kPatch};

struct Order {
  std::vector<size_t> draws;
  size_t plain = 0;  // the first of these
};

Order OrderOf(const DrawSet& draws, const CompareRule& rule) {
  Order order;
  const auto add = [&](auto&& wanted) {
    for (size_t i = 0; i < draws.draws().size(); ++i)
      if (!draws.draws()[i].dropped && wanted(draws.draws()[i].kind)) order.draws.push_back(i);
  };
  for (const DrawKind kind : kPlain) add([kind](DrawKind other) { return other == kind; });
  order.plain = order.draws.size();
  add([&](DrawKind kind) {
    return std::ranges::find(kPlain, kind) == std::end(kPlain) &&
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
  std::vector<std::string> only_on(mutants.size());
  for (size_t draw = 0; draw < steps.kinds.size() && any; ++draw) {
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
      if (!ran->passed && draw >= steps.plain) only_on[m] = steps.kinds[draw];
      any = any || ran->passed;
    }
  }
  std::vector<bool> not_tried(catalog.operators.size());
  // The mutant that saves the most, of those that pass all draws, or the plain ones.
  std::vector<UnseenOperator> holes(catalog.operators.size());
  for (size_t m = 0; m < mutants.size(); ++m) {
    MutantRecord& mutant = mutants[m];
    const bool killed = mutant.result == MutantResult::kKilled;
    if (!killed && (left[m] || !changed[m])) mutant.result = MutantResult::kEquivalent;
    if (mutant.operator_number < 0 || (killed && only_on[m].empty())) continue;
    const auto of = static_cast<size_t>(mutant.operator_number);
    not_tried[of] = not_tried[of] || (!killed && left[m]);
    if (mutant.result == MutantResult::kEquivalent) continue;
    UnseenOperator& most = holes[of];
    const double share = catalog.time_shares[m];
    const bool is_more =
        share > most.time_share || (share == most.time_share && only_on[m] < most.only_on);
    if (!most.mutant.empty() && !is_more) continue;
    most = {{}, 0, mutant.words, share, only_on[m]};
  }
  std::vector<OperatorRecord> operators = catalog.operators;
  CoverOperators(mutants, &operators);
  OperatorCoverage coverage;
  for (size_t i = 0; i < operators.size(); ++i) {
    const OperatorRecord& one = operators[i];
    if (one.result == OperatorResult::kRedundant && !not_tried[i]) continue;
    ++coverage.operators;
    if (UnseenOperator& hole = holes[i]; !hole.mutant.empty()) {
      hole.name = one.name;
      hole.line = one.line;
      coverage.unseen.push_back(std::move(hole));
    } else if (not_tried[i]) {
      ++coverage.not_tried;
    } else {
      ++coverage.seen;
    }
  }
  return coverage;
}

HostResult<std::optional<OperatorCoverage>> LookAtOperators(Oracle& oracle, const DrawSet& draws,
                                                            const CompareRule& rule,
                                                            double seconds) {
  // A list of mutants takes about three calls, and each mutant one.
  constexpr double kDrawsLeast = 4;
  const Order order = OrderOf(draws, rule);
  if (oracle.on_device() || oracle.slots_max() < 2 || oracle.description().own_check ||
      !draws.degenerate().empty() || order.draws.empty() || kDrawsLeast * draws.draw_s() > seconds)
    return std::nullopt;
  const Span span("coverage of operators");
  const int64_t end_ns = MonotonicNs() + static_cast<int64_t>(seconds * 1e9);
  const auto first = draws.Master(oracle, order.draws.front());
  if (!first) return std::unexpected(first.error());
  const auto text = oracle.ListMutants(*first, Oracle::Mutants::kOperators);
  if (!text) return std::unexpected(text.error());
  const auto catalog = ParseMutants(*text);
  if (!catalog) return HostFailed(HostTrouble::Kind::kEnvironment, catalog.error().message);
  uint32_t master = *first;
  size_t shown = 0;
  CoverageSteps steps;
  for (const size_t draw : order.draws)
    steps.kinds.emplace_back(DrawKindName(draws.draws()[draw].kind));
  steps.plain = order.plain;
  steps.show = [&](size_t draw) -> HostResult<void> {
    shown = order.draws[draw];
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
