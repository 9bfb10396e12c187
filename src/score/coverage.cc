// Theory of operation. A problem has z chance to be out of reach; else its chance p of a correct
// attempt has the density Beta(a, b), so that c of n attempts are correct with the probability of
// the beta-binomial distribution, C(n, c) B(a + c, b + n - c) / B(a, b). The likelihood is the
// product over problems of [c = 0] z + (1 - z) times that. For given a and b it is concave in ln of
// itself over z, and its derivative falls: bisection finds z. Over the mean m = a / (a + b) and the
// size s = a + b a grid, and then steps along the axes that shrink, find the rest. Without z this
// is Skellam, "A Probability Distribution Derived from the Binomial Distribution by Regarding the
// Probability of Success as Variable between the Sets of Trials", JRSS B 10 (1948).
#include "score/coverage.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "score/at_k.h"

namespace assay {
namespace {

constexpr double kChiSquare95 = 3.841458820694124;  // of one degree of freedom

struct Group {
  int64_t attempts = 0, correct = 0;
  double problems = 0;
};

// ln(m / (1 - m)) and ln(s).
struct Shape {
  double mean = 0, size = 0;

  double Alpha() const { return std::exp(size) / (1 + std::exp(-mean)); }
  double Beta() const { return std::exp(size) / (1 + std::exp(mean)); }
};
constexpr double kMeanMax = 9, kSizeMin = -4, kSizeMax = 9;

double LogBeta(double a, double b) { return std::lgamma(a) + std::lgamma(b) - std::lgamma(a + b); }

// ln of the beta-binomial probability, without the binomial coefficient, which no parameter
// changes.
double LogChance(const Group& group, double a, double b) {
  return LogBeta(a + static_cast<double>(group.correct),
                 b + static_cast<double>(group.attempts - group.correct)) -
         LogBeta(a, b);
}

double LogLikelihood(const std::vector<Group>& groups, const Shape& shape, double z) {
  const double a = shape.Alpha(), b = shape.Beta();
  double sum = 0;
  for (const Group& group : groups) {
    const double chance = (1 - z) * std::exp(LogChance(group, a, b));
    sum += group.problems *
           (group.correct == 0 ? std::log(z + chance) : std::log(1 - z) + LogChance(group, a, b));
  }
  return sum;
}

double BestShare(const std::vector<Group>& groups, const Shape& shape) {
  const double a = shape.Alpha(), b = shape.Beta();
  double solved = 0;
  std::vector<std::pair<double, double>> unsolved;  // P(0), problems
  for (const Group& group : groups) {
    if (group.correct == 0)
      unsolved.emplace_back(std::exp(LogChance(group, a, b)), group.problems);
    else
      solved += group.problems;
  }
  const auto slope = [&](double z) {
    double sum = -solved / (1 - z);
    for (const auto& [chance, problems] : unsolved)
      sum += problems * (1 - chance) / (z + (1 - z) * chance);
    return sum;
  };
  double low = 0, high = 1 - 1e-9;
  if (slope(low) <= 0) return 0;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (slope(middle) > 0 ? low : high) = middle;
  }
  return low;
}

struct Optimum {
  Shape shape;
  double z = 0, log_likelihood = 0;
};

// At a fixed z if it is given, else at the best one.
Optimum At(const std::vector<Group>& groups, const Shape& shape, std::optional<double> z) {
  const double share = z ? *z : BestShare(groups, shape);
  return {shape, share, LogLikelihood(groups, shape, share)};
}

Optimum Climb(const std::vector<Group>& groups, Optimum best, std::optional<double> z) {
  constexpr double kFirstStep = 0.5, kLastStep = 1e-4;
  for (double step = kFirstStep; step > kLastStep;) {
    const Optimum before = best;
    for (const auto& [mean, size] :
         std::array<std::pair<double, double>, 4>{{{step, 0}, {-step, 0}, {0, step}, {0, -step}}}) {
      const Shape shape{std::clamp(best.shape.mean + mean, -kMeanMax, kMeanMax),
                        std::clamp(best.shape.size + size, kSizeMin, kSizeMax)};
      const Optimum next = At(groups, shape, z);
      if (next.log_likelihood > best.log_likelihood) best = next;
    }
    if (best.log_likelihood <= before.log_likelihood) step /= 2;
  }
  return best;
}

Optimum Maximum(const std::vector<Group>& groups, std::optional<double> z) {
  Optimum best = At(groups, {}, z);
  for (double mean = -6; mean <= 6; mean += 1)
    for (double size = -3; size <= 7; size += 1)
      if (const Optimum next = At(groups, {mean, size}, z);
          next.log_likelihood > best.log_likelihood)
        best = next;
  return Climb(groups, best, z);
}

// The end of the interval of z between `inside` and `outside`.
double IntervalEnd(const std::vector<Group>& groups, const Optimum& best, double outside) {
  double inside = best.z;
  Optimum from = best;
  const auto within = [&](double z) {
    const Optimum found = Climb(groups, At(groups, from.shape, z), z);
    if (2 * (best.log_likelihood - found.log_likelihood) > kChiSquare95) return false;
    from = found;
    return true;
  };
  if (within(outside)) return outside;
  for (int i = 0; i < 14; ++i) {
    const double middle = (inside + outside) / 2;
    (within(middle) ? inside : outside) = middle;
  }
  return inside;
}

std::vector<Group> Grouped(std::span<const AttemptCount> problems) {
  std::map<std::pair<int64_t, int64_t>, double> counts;
  for (const AttemptCount& problem : problems)
    if (problem.attempts > 0) ++counts[{problem.attempts, problem.correct}];
  std::vector<Group> groups;
  for (const auto& [key, count] : counts) groups.push_back({key.first, key.second, count});
  return groups;
}

}  // namespace

double CoverageFit::At(int64_t k) const {
  const double none =
      std::exp(LogBeta(alpha, beta + static_cast<double>(k)) - LogBeta(alpha, beta));
  return (1 - out_of_reach) * (1 - none);
}

std::optional<CoverageFit> FitCoverage(std::span<const AttemptCount> problems) {
  constexpr double kProblemsMin = 5;
  const std::vector<Group> groups = Grouped(problems);
  double count = 0;
  bool several = false, correct = false;
  for (const Group& group : groups) {
    count += group.problems;
    several = several || group.attempts > 1;
    correct = correct || group.correct > 0;
  }
  if (count < kProblemsMin || !several || !correct) return std::nullopt;
  const Optimum best = Maximum(groups, std::nullopt);
  CoverageFit fit;
  fit.out_of_reach = best.z;
  fit.alpha = best.shape.Alpha();
  fit.beta = best.shape.Beta();
  fit.log_likelihood = best.log_likelihood;
  fit.log_likelihood_in_reach = Maximum(groups, 0.0).log_likelihood;
  fit.low = IntervalEnd(groups, best, 0);
  fit.high = IntervalEnd(groups, best, 1 - 1e-6);
  return fit;
}

std::optional<Coverage> CoverageOf(std::span<const AttemptCount> problems) {
  auto fit = FitCoverage(problems);
  if (!fit) return std::nullopt;
  Coverage coverage;
  coverage.fit = *fit;
  int64_t fewest = 0;
  double shares = 0;
  for (const AttemptCount& problem : problems) {
    if (problem.attempts == 0) continue;
    fewest = coverage.problems == 0 ? problem.attempts : std::min(fewest, problem.attempts);
    ++coverage.problems;
    shares += static_cast<double>(problem.correct) / static_cast<double>(problem.attempts);
  }
  const auto count = static_cast<double>(coverage.problems);
  coverage.correct = shares / count;
  for (int64_t decade = 1; decade <= fewest; decade *= 10) {
    for (const int64_t k : {decade, 2 * decade, 5 * decade}) {
      if (k > fewest) break;
      double measured = 0;
      for (const AttemptCount& problem : problems)
        if (problem.attempts > 0) measured += PassAtK(problem.attempts, problem.correct, k);
      coverage.rows.push_back({k, measured / count,
                               1 - std::pow(1 - coverage.correct, static_cast<double>(k)),
                               fit->At(k)});
    }
  }
  return coverage;
}

}  // namespace assay
