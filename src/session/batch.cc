#include "session/batch.h"

#include <fmt/format.h>

#include <utility>

#include "base/defences.h"
#include "hosts/blame.h"
#include "machine/seeds.h"
#include "session/problem_coverage.h"
#include "values/draw_kinds.h"

namespace assay {

namespace {

// Draws of one size take about this long at most, however long one takes [s].
constexpr double kDrawsS = 60;

DrawBudget BudgetOf(Workbench& bench) {
  return {kDrawsS, [&bench](double draw_s, size_t made, size_t all) {
            const std::string set =
                bench.oracle->SetForShare(kDrawsS / draw_s / static_cast<double>(all));
            bench.notice(fmt::format(
                "one draw of values takes {:.0f} s here, with the outputs of the reference: {} of "
                "{} kinds are tried{}",
                draw_s, made, all, set.empty() ? "" : "; all of them with " + set));
          }};
}

// On a device each size is compiled for, in the device form, and starts CUDA anew.
constexpr size_t kSizesOnProcessor = 3, kSizesOnDevice = 1;

}  // namespace

Result<OtherSizes> MakeBatchSizes(const Workbench& bench, uint64_t seed,
                                  const std::shared_ptr<Host>& host, const DrawProgress& progress) {
  const SessionTerms& terms = bench.terms;
  const auto rule_for = [&](const Oracle& oracle) {
    return RuleFor(terms.problem, terms.precision, terms.tolerance, oracle);
  };
  const uint64_t own_seed = DeriveSeed(seed, SeedStream::kOtherSize);
  OtherSizes sizes;
  for (auto& set :
       DrawSizes(terms.problem, own_seed, bench.on_device() ? kSizesOnDevice : kSizesOnProcessor)) {
    ASSAY_ASSIGN_OR_RETURN(
        auto size, MakeOtherSize(bench.oracle_options, std::move(set), host, bench.device.get(),
                                 rule_for, own_seed + sizes.size(), terms.ragged_asked, progress));
    if (size) sizes.push_back(std::move(size));
  }
  return sizes;
}

Result<std::unique_ptr<Batch>> MakeBatch(Workbench& bench, uint64_t seed, OtherSizes other_sizes,
                                         const DrawProgress& progress) {
  const ProblemRequest& problem = bench.terms.problem;
  Oracle& oracle = *bench.oracle;
  ASSAY_ASSIGN_OR_RETURN(const std::vector<wire::DrawKind> skip, SkippedDraws(problem));
  auto draws = DrawSet::Make(oracle, bench.rule, DeriveSeed(seed, SeedStream::kDraws), skip,
                             progress, BudgetOf(bench));
  if (!draws) return std::unexpected(TroubleAsError(draws.error(), problem.path));
  if (!std::exchange(bench.looked_for_coverage, true)) {
    ASSAY_ASSIGN_OR_RETURN(bench.coverage, CoverageFor(bench, *draws));
  }
  // One master serves both, in turn.
  const uint32_t first = oracle.slots_max() > draws->slots_used() ? draws->slots_used() : 0;
  ValuePool values(oracle, first, ValuePool::CapacityFor(oracle, first),
                   DeriveSeed(seed, SeedStream::kValues), draws->Kept(),
                   draws->has_signs() && Stands(Defence::kTimedDraws));
  return std::make_unique<Batch>(
      Batch{std::move(other_sizes), std::move(*draws), std::move(values)});
}

}  // namespace assay
