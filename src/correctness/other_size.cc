#include "correctness/other_size.h"

#include <fmt/format.h>

#include <random>

#include "base/defences.h"
#include "machine/machine.h"
#include "values/draw_kinds.h"

namespace assay {
namespace {

// Of the draws at another size, about, however long one takes [s].
constexpr double kDrawsS = 30;

std::string TextOf(const ProblemRequest& problem, const std::map<std::string, std::string>& set) {
  std::string text;
  for (const auto& [name, range] : problem.ragged)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, set.at(name));
  return text;
}

}  // namespace

std::map<std::string, std::string> DrawSizes(const ProblemRequest& problem, uint64_t seed) {
  if (problem.ragged.empty() || !Stands(Defence::kRaggedSizes)) return {};
  std::map<std::string, std::string> set = problem.set;
  std::mt19937_64 random(seed);
  for (const auto& [name, range] : problem.ragged) {
    const auto [least, most] = range;
    // The ends, where loops run once or not at all, come up more often than by chance.
    const uint64_t choice = random() % 8;
    const auto span = static_cast<uint64_t>(most - least + 1);
    const int64_t value = choice == 0   ? least
                          : choice == 1 ? most
                                        : least + static_cast<int64_t>(random() % span);
    set[name] = fmt::format("{}", value);
  }
  return set;
}

Result<std::unique_ptr<OtherSize>> MakeOtherSize(
    OracleOptions options, std::map<std::string, std::string> set, std::shared_ptr<Host> host,
    JudgeDevice* device, const std::function<Result<CompareRule>(const Oracle&)>& rule,
    uint64_t seed, const std::function<void(size_t, size_t)>& progress) {
  if (set.empty()) return nullptr;
  options.problem.set = std::move(set);
  const ProblemRequest& problem = options.problem;
  std::string settings =
      HostSettings(problem, ThreadsOfCorrectness(options.threads), options.weights_seed, "eager");
  std::string text = TextOf(problem, problem.set);
  auto opened = Oracle::OpenOther(options, std::move(host));
  if (!opened && opened.error().kind == ErrorKind::kUsage) return nullptr;
  if (!opened) return std::unexpected(opened.error());
  Oracle oracle = std::move(*opened);
  ASSAY_ASSIGN_OR_RETURN(const CompareRule compare, rule(oracle));
  ASSAY_ASSIGN_OR_RETURN(LiveSlots live, LiveSlots::Create(oracle, device));
  ASSAY_ASSIGN_OR_RETURN(const std::vector<wire::DrawKind> skip, SkippedDraws(problem));
  auto draws = DrawSet::Make(oracle, compare, seed, skip, progress, {kDrawsS});
  if (!draws && draws.error().kind == HostTrouble::Kind::kFailed) return nullptr;
  if (!draws) return std::unexpected(OracleError(draws.error()));
  if (draws->slots_used() == 1) return nullptr;  // they could not be made again
  return std::make_unique<OtherSize>(OtherSize{std::move(options), std::move(settings),
                                               std::move(text), compare, std::move(oracle),
                                               std::move(live), std::move(*draws)});
}

}  // namespace assay
