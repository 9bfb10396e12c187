#include "search/points.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace assay {
namespace {

constexpr size_t kDrawsMax = 200;
constexpr uint64_t kEnumeratedMax = uint64_t{1} << 20;
constexpr size_t kFirstMax = 10;       // random points before anything is derived
constexpr size_t kPopulationMax = 24;  // the best trials, which have children
constexpr int kMutationsMax = 60;

// The next point in the order of enumeration; false after the last.
bool Advance(const TuneSpace& space, TunePoint* point) {
  for (size_t line = point->size(); line-- > 0;) {
    if (++(*point)[line] < space.tunes[line].values.size()) return true;
    (*point)[line] = 0;
  }
  return false;
}

// Places of the trials that ran, best first.
std::vector<size_t> BestTrials(const TunerKnowledge& known, size_t count_max) {
  std::vector<size_t> order;
  for (size_t i = 0; i < known.trials().size(); ++i)
    if (known.trials()[i].ratio > 0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return known.trials()[a].ratio > known.trials()[b].ratio;
  });
  if (order.size() > count_max) order.resize(count_max);
  return order;
}

std::optional<Choice> ChooseAtRandom(const TunerKnowledge& known, StepRandom& random) {
  auto point = known.RandomPoint(random);
  if (!point) return std::nullopt;
  return Choice{std::move(*point), {}, "random"};
}

std::optional<Choice> ChooseInOrder(const TunerKnowledge& known, StepRandom&) {
  auto points = known.NewPoints(1);
  if (points.empty()) return std::nullopt;
  return Choice{std::move(points.front()), {}, "enumerate"};
}

// All new points that differ from this one in one coordinate, by one rank.
std::vector<TunePoint> NewNeighbours(const TunerKnowledge& known, const TunePoint& point) {
  std::vector<TunePoint> neighbours;
  for (size_t line = 0; line < point.size(); ++line) {
    const size_t rank = known.RankOf(line, point[line]);
    const size_t last = known.space().tunes[line].values.size() - 1;
    for (const bool up : {false, true}) {
      if (up ? rank == last : rank == 0) continue;
      TunePoint neighbour = point;
      neighbour[line] = known.PlaceOf(line, up ? rank + 1 : rank - 1);
      if (known.IsNew(neighbour)) neighbours.push_back(std::move(neighbour));
    }
  }
  return neighbours;
}

// Climbs from the best that has a neighbour left; now and then starts elsewhere.
std::optional<Choice> ChooseUphill(const TunerKnowledge& known, StepRandom& random) {
  constexpr double kElsewhere = 0.1;
  if (random.Unit() >= kElsewhere)
    for (const size_t trial : BestTrials(known, known.trials().size())) {
      const auto neighbours = NewNeighbours(known, known.trials()[trial].point);
      if (!neighbours.empty())
        return Choice{neighbours[random.Below(neighbours.size())], {trial}, "neighbour"};
    }
  return ChooseAtRandom(known, random);
}

// Places of the newest trials that ran, best first.
std::vector<size_t> NewestTrials(const TunerKnowledge& known, size_t count_max) {
  std::vector<size_t> order;
  for (size_t i = known.trials().size(); i-- > 0 && order.size() < count_max;)
    if (known.trials()[i].ratio > 0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return known.trials()[a].ratio > known.trials()[b].ratio;
  });
  return order;
}

// The best of three, drawn from the population.
size_t Winner(const std::vector<size_t>& population, StepRandom& random) {
  size_t best = population.size();
  for (int i = 0; i < 3; ++i) best = std::min(best, random.Below(population.size()));
  return population[best];
}

std::optional<Choice> ChooseChildOf(const std::vector<size_t>& population,
                                    const TunerKnowledge& known, StepRandom& random) {
  constexpr double kNewcomers = 0.1, kCrossings = 0.35;
  const size_t first = std::min<uint64_t>(kFirstMax, CountPoints(known.space()) / 8 + 2);
  if (population.empty() || known.trials().size() + known.pending().size() < first ||
      random.Unit() < kNewcomers)
    return ChooseAtRandom(known, random);
  const size_t mother = Winner(population, random);
  if (random.Unit() < kCrossings) {
    const size_t father = Winner(population, random);
    TunePoint child = known.trials()[mother].point;
    for (size_t& place : child)
      if (random.Unit() < 0.5)
        place = known.trials()[father].point[static_cast<size_t>(&place - child.data())];
    if (known.IsNew(child)) return Choice{std::move(child), {mother, father}, "cross"};
  }
  if (auto child = MutatedPoint(known, known.trials()[mother].point, random))
    return Choice{std::move(*child), {mother}, "mutate"};
  return ChooseAtRandom(known, random);
}

std::optional<Choice> ChooseChild(const TunerKnowledge& known, StepRandom& random) {
  return ChooseChildOf(BestTrials(known, kPopulationMax), known, random);
}

// Evolution that forgets: the best of all may have no more children.
std::optional<Choice> ChooseChildOfNewest(const TunerKnowledge& known, StepRandom& random) {
  return ChooseChildOf(NewestTrials(known, kPopulationMax), known, random);
}

// A child of the best one alone.
std::optional<Choice> ChooseChildOfBest(const TunerKnowledge& known, StepRandom& random) {
  const auto best = BestTrials(known, 1);
  if (!best.empty())
    if (auto child = MutatedPoint(known, known.trials()[best[0]].point, random))
      return Choice{std::move(*child), {best[0]}, "mutate"};
  return ChooseAtRandom(known, random);
}

}  // namespace

TunerKnowledge::TunerKnowledge(const TuneSpace& space) : space_(space) {
  for (const TuneLine& tune : space_.tunes) {
    std::vector<size_t> order(tune.values.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return tune.values[a] < tune.values[b]; });
    std::vector<size_t> rank(order.size());
    for (size_t i = 0; i < order.size(); ++i) rank[order[i]] = i;
    const double low = static_cast<double>(tune.values[order.front()]);
    const double high = static_cast<double>(tune.values[order.back()]);
    std::vector<double> scaled;
    for (const int64_t value : tune.values) {
      const double v = static_cast<double>(value);
      scaled.push_back(high <= low ? 0
                       : low > 0   ? std::log(v / low) / std::log(high / low)
                                   : (v - low) / (high - low));
    }
    rank_.push_back(std::move(rank));
    place_.push_back(std::move(order));
    scaled_.push_back(std::move(scaled));
  }
}

bool TunerKnowledge::IsNew(const TunePoint& point) const {
  return !asked_.contains(point) && Allows(space_, point);
}

void TunerKnowledge::Ask(const TunePoint& point) {
  asked_.insert(point);
  pending_.insert(point);
}

size_t TunerKnowledge::Tell(const TunePoint& point, double ratio) {
  asked_.insert(point);
  pending_.erase(point);
  trials_.push_back({point, ratio});
  return trials_.size() - 1;
}

std::optional<TunePoint> TunerKnowledge::RandomPoint(StepRandom& random) const {
  for (size_t draw = 0; draw < kDrawsMax; ++draw) {
    TunePoint point;
    for (const TuneLine& tune : space_.tunes) point.push_back(random.Below(tune.values.size()));
    if (IsNew(point)) return point;
  }
  const auto points = NewPoints(kEnumeratedMax);
  if (points.empty()) return std::nullopt;
  return points[random.Below(points.size())];
}

std::vector<TunePoint> TunerKnowledge::NewPoints(size_t count_max) const {
  std::vector<TunePoint> points;
  TunePoint point(space_.tunes.size(), 0);
  uint64_t seen = 0;
  do {
    if (IsNew(point)) points.push_back(point);
  } while (points.size() < count_max && ++seen < kEnumeratedMax && Advance(space_, &point));
  return points;
}

std::optional<TunePoint> MutatedPoint(const TunerKnowledge& known, const TunePoint& point,
                                      StepRandom& random) {
  constexpr double kNear = 0.7;
  for (int attempt = 0; attempt < kMutationsMax; ++attempt) {
    TunePoint child = point;
    // Further away the longer nothing new is found.
    const int changes = 1 + attempt / 20 + (random.Unit() < 0.3 ? 1 : 0);
    for (int i = 0; i < changes; ++i) {
      const size_t line = random.Below(point.size());
      const size_t count = known.space().tunes[line].values.size(),
                   rank = known.RankOf(line, child[line]);
      const bool up = random.Unit() < 0.5;
      if (random.Unit() < kNear && (up ? rank + 1 < count : rank > 0))
        child[line] = known.PlaceOf(line, up ? rank + 1 : rank - 1);
      else
        child[line] = random.Below(count);
    }
    if (known.IsNew(child)) return child;
  }
  return std::nullopt;
}

Result<Chooser> MakeChooser(const std::string& strategy) {
  if (strategy == "sample") return ChooseAtRandom;
  if (strategy == "refine") return ChooseUphill;
  if (strategy == "evolve") return ChooseChild;
  if (strategy == "surrogate") return ChooseBySurrogate;
  if (strategy == "exhaustive") return ChooseInOrder;
  if (strategy == "greedy") return ChooseChildOfBest;
  if (strategy == "no-archive") return ChooseChildOfNewest;
  return UsageError(fmt::format(
      "--strategy {}: the tuner has sample, refine, evolve, surrogate, exhaustive, greedy and "
      "no-archive",
      strategy));
}

}  // namespace assay
