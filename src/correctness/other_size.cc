#include "correctness/other_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
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

// Sizes that a kernel which is right at round ones tends to miss.
enum class Kind { kLeast, kMost, kShort, kNeighbour, kOddTiles, kPrime, kAny };

constexpr size_t kMixed = 8;
constexpr std::array<std::array<Kind, kMixed>, 3> kKindsBySize{{
    {Kind::kLeast, Kind::kMost, Kind::kShort, Kind::kNeighbour, Kind::kOddTiles, Kind::kPrime,
     Kind::kAny, Kind::kAny},
    {Kind::kOddTiles, Kind::kOddTiles, Kind::kOddTiles, Kind::kPrime, Kind::kPrime, Kind::kShort,
     Kind::kShort, Kind::kAny},
    {Kind::kNeighbour, Kind::kNeighbour, Kind::kNeighbour, Kind::kPrime, Kind::kPrime, Kind::kLeast,
     Kind::kMost, Kind::kOddTiles},
}};
// Elements of a vector register, at least; and of a tile, usually.
constexpr int64_t kVector = 4;
constexpr int64_t kTiles[] = {4, 8, 16, 32, 64};

bool IsPrime(int64_t number) {
  for (int64_t factor = 2; factor * factor <= number; ++factor)
    if (number % factor == 0) return false;
  return number > 1;
}

// Returns a number of the range [least, most].
int64_t AnyOf(int64_t least, int64_t most, std::mt19937_64& random) {
  return least + static_cast<int64_t>(random() % static_cast<uint64_t>(most - least + 1));
}

// Returns a number of this kind; any one of the range if it holds none, or few. `judged`: the value
// at the size that was asked for, as text; it may be empty, or no number.
int64_t ValueOf(Kind kind, std::pair<int64_t, int64_t> range, const std::string& judged,
                std::mt19937_64& random) {
  const auto [least, most] = range;
  const int64_t any = AnyOf(least, most, random);
  const auto within = [&](int64_t value) { return value >= least && value <= most; };
  switch (kind) {
    case Kind::kLeast:
      return least;
    case Kind::kMost:
      return most;
    case Kind::kShort:
      return least < kVector ? AnyOf(least, std::min(most, kVector - 1), random) : least;
    case Kind::kNeighbour: {
      const int64_t side = random() % 2 == 0 ? -1 : 1;
      const int64_t asked = std::atoll(judged.c_str());
      if (asked > 0 && within(asked + side)) return asked + side;
      const int64_t round = any / 8 * 8 + side;
      return within(round) ? round : any;
    }
    case Kind::kOddTiles: {
      const int64_t tile = kTiles[random() % std::size(kTiles)];
      const int64_t odd = tile * (any / tile / 2 * 2 + 1);
      return within(odd) ? odd : within(odd - 2 * tile) ? odd - 2 * tile : any;
    }
    case Kind::kPrime:
      for (int64_t value = any; value >= least && value > any - 200; --value)
        if (IsPrime(value)) return value;
      return any;
    case Kind::kAny:
      break;
  }
  return any;
}

}  // namespace

std::vector<std::map<std::string, std::string>> DrawSizes(const ProblemRequest& problem,
                                                          uint64_t seed, size_t count) {
  if (problem.ragged.empty() || !Stands(Defence::kRaggedSizes)) return {};
  std::vector<std::map<std::string, std::string>> sizes;
  std::mt19937_64 random(seed);
  for (size_t i = 0; i < count; ++i) {
    std::map<std::string, std::string> set = problem.set;
    // Of the second size one constant at least is short.
    size_t must_be_short = i == 1 ? random() % problem.ragged.size() : SIZE_MAX;
    for (const auto& [name, range] : problem.ragged) {
      const bool is_short = must_be_short-- == 0;
      const Kind kind =
          is_short ? Kind::kShort : kKindsBySize[i % kKindsBySize.size()][random() % kMixed];
      const auto judged = problem.set.find(name);
      set[name] = fmt::format(
          "{}", ValueOf(kind, range, judged == problem.set.end() ? "" : judged->second, random));
    }
    if (set != problem.set && std::find(sizes.begin(), sizes.end(), set) == sizes.end())
      sizes.push_back(std::move(set));
  }
  return sizes;
}

bool HasOtherArguments(const wire::Plan& a, const wire::Plan& b) {
  const auto differ = [](const wire::ArgumentSpec& one, const wire::ArgumentSpec& other) {
    return one.role != other.role || one.kind != other.kind || one.dtype != other.dtype ||
           one.rank != other.rank;
  };
  if (a.argument_count != b.argument_count) return true;
  for (uint32_t i = 0; i < a.argument_count; ++i)
    if (differ(a.arguments[i], b.arguments[i])) return true;
  return false;
}

Result<std::unique_ptr<OtherSize>> MakeOtherSize(
    OracleOptions options, std::map<std::string, std::string> set, std::shared_ptr<Host> host,
    JudgeDevice* device, const std::function<Result<CompareRule>(const Oracle&)>& rule,
    uint64_t seed, bool asked, const std::function<void(size_t, size_t)>& progress) {
  options.problem.set = std::move(set);
  const ProblemRequest& problem = options.problem;
  std::string settings =
      HostSettings(problem, ThreadsOfCorrectness(options.threads), options.weights_seed, "eager");
  std::string text = TextOf(problem, problem.set);
  auto opened = Oracle::OpenOther(options, std::move(host));
  const auto unfit = [&](const std::string& why) -> Result<std::unique_ptr<OtherSize>> {
    if (!asked) return nullptr;
    return UsageError(fmt::format("--ragged: the problem cannot be judged at {}: {}", text, why));
  };
  if (!opened && opened.error().kind == ErrorKind::kUsage) return unfit(opened.error().message);
  if (!opened) return std::unexpected(opened.error());
  Oracle oracle = std::move(*opened);
  ASSAY_ASSIGN_OR_RETURN(const CompareRule compare, rule(oracle));
  ASSAY_ASSIGN_OR_RETURN(LiveSlots live, LiveSlots::Create(oracle, device));
  ASSAY_ASSIGN_OR_RETURN(const std::vector<wire::DrawKind> skip, SkippedDraws(problem));
  auto draws = DrawSet::Make(oracle, compare, seed, skip, progress, {kDrawsS});
  if (!draws && draws.error().failure == wire::Failure::kProblemCheck)
    return UsageError(fmt::format("at {}: {}", text, draws.error().message));
  if (!draws && draws.error().kind == HostTrouble::Kind::kFailed)
    return unfit(draws.error().message);
  if (!draws) return std::unexpected(OracleError(draws.error()));
  // Its host then serves the size that is timed, and makes these draws no more.
  if (draws->slots_used() == 1) return unfit("memory lacks room for all its draws");
  return std::make_unique<OtherSize>(OtherSize{std::move(options), std::move(settings),
                                               std::move(text), compare, std::move(oracle),
                                               std::move(live), std::move(*draws)});
}

}  // namespace assay
