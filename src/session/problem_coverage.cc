#include "session/problem_coverage.h"

#include <string>
#include <vector>

#include "base/files.h"
#include "base/version.h"
#include "correctness/coverage.h"
#include "hosts/blame.h"
#include "model/verdict_json.h"
#include "toolchain/build.h"

namespace assay {
namespace {

constexpr double kSeconds = 5;
constexpr uint64_t kKeptBytesMax = 16 << 20;

// Names all on which the coverage rests.
std::string KeyOf(const ProblemRequest& problem, const std::string& torch_version,
                  const std::string& tolerance) {
  std::vector<std::string> parts{std::string(kAssayVersion),
                                 torch_version,
                                 problem.source,
                                 problem.device,
                                 tolerance.empty() ? problem.tolerance : tolerance,
                                 problem.precision,
                                 problem.special_values,
                                 std::string(WeightsKindName(problem.weights))};
  for (const auto& [name, value] : problem.set) parts.push_back(name + "=" + value);
  parts.insert(parts.end(), problem.skip_draws.begin(), problem.skip_draws.end());
  return ArtifactCache::Key(parts);
}

ArtifactCache Kept() { return ArtifactCache((CacheFolder() / "coverage").string(), kKeptBytesMax); }

}  // namespace

std::optional<OperatorCoverage> KeptCoverage(const ProblemRequest& problem,
                                             const std::string& torch_version,
                                             const std::string& tolerance) {
  const auto text = Kept().Get(KeyOf(problem, torch_version, tolerance));
  return text ? CoverageFromJson(*text) : std::nullopt;
}

Result<std::optional<OperatorCoverage>> CoverageFor(Workbench& bench, const DrawSet& draws) {
  const ProblemRequest& problem = bench.terms.problem;
  const std::string &torch = bench.python.torch_version, &tolerance = bench.terms.tolerance;
  if (auto kept = KeptCoverage(problem, torch, tolerance)) return kept;
  auto looked = LookAtOperators(*bench.oracle, draws, bench.rule, kSeconds);
  if (!looked) return std::unexpected(TroubleAsError(looked.error(), problem.path));
  // A result that cannot be kept is measured again.
  if (*looked) (void)Kept().Put(KeyOf(problem, torch, tolerance), CoverageToJson(**looked));
  return std::move(*looked);
}

}  // namespace assay
