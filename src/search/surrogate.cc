// A Gaussian process over the points of a tuned space (Rasmussen and Williams, 2006, algorithm
// 2.1), with a length for each coordinate that the likelihood chooses.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "search/points.h"

namespace assay {
namespace {

constexpr size_t kTrialsMax = 300;  // the newest that are fitted
constexpr size_t kLearntMax = 80;   // of these, for the lengths
constexpr size_t kCandidatesMax = 600;
constexpr size_t kFirstMax = 12;  // random points before the first fit
constexpr double kNoise = 0.02;   // variance of a measurement, of the whole variance

using Features = std::vector<double>;

Features FeaturesOf(const TunerKnowledge& known, const TunePoint& point) {
  Features features;
  for (size_t line = 0; line < point.size(); ++line)
    features.push_back(known.Scaled(line, point[line]));
  return features;
}

// The weight of each coordinate: 1 / length^2.
using Weights = std::vector<double>;

class GaussianProcess {
 public:
  GaussianProcess(std::vector<Features> x, std::vector<double> y, Weights weights)
      : x_(std::move(x)), y_(std::move(y)), weights_(std::move(weights)) {
    log_likelihood_ = Fit();
  }
  double log_likelihood() const { return log_likelihood_; }

  struct Prediction {
    double mean = 0, deviation = 0;
  };
  Prediction At(const Features& at) const {
    const size_t n = x_.size();
    std::vector<double> k(n);
    for (size_t i = 0; i < n; ++i) k[i] = Kernel(x_[i], at);
    const double mean = std::inner_product(k.begin(), k.end(), alpha_.begin(), 0.0);
    double variance = 1;
    for (size_t i = 0; i < n; ++i) {  // k becomes L^-1 k
      const double* row = &factor_[i * n];
      k[i] = (k[i] - std::inner_product(row, row + i, k.begin(), 0.0)) / row[i];
      variance -= k[i] * k[i];
    }
    return {mean, std::sqrt(std::max(variance, 1e-12))};
  }

 private:
  // Matern 5/2.
  double Kernel(const Features& a, const Features& b) const {
    double square = 0;
    for (size_t i = 0; i < a.size(); ++i) square += weights_[i] * (a[i] - b[i]) * (a[i] - b[i]);
    const double r = std::sqrt(5 * square);
    return (1 + r + r * r / 3) * std::exp(-r);
  }

  // Returns the logarithm of the likelihood, up to a constant.
  double Fit() {
    const size_t n = x_.size();
    factor_.assign(n * n, 0);
    double log_determinant = 0;
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j <= i; ++j) {
        const double* a = &factor_[i * n];
        const double* b = &factor_[j * n];
        const double rest =
            Kernel(x_[i], x_[j]) + (i == j ? kNoise : 0) - std::inner_product(a, a + j, b, 0.0);
        factor_[i * n + j] = i == j ? std::sqrt(std::max(rest, 1e-12)) : rest / b[j];
        if (i == j) log_determinant += std::log(factor_[i * n + i]);
      }
    alpha_ = y_;
    for (size_t i = 0; i < n; ++i) {
      const double* row = &factor_[i * n];
      alpha_[i] = (alpha_[i] - std::inner_product(row, row + i, alpha_.begin(), 0.0)) / row[i];
    }
    const double square = std::inner_product(alpha_.begin(), alpha_.end(), alpha_.begin(), 0.0);
    for (size_t i = n; i-- > 0;) {
      for (size_t j = i + 1; j < n; ++j) alpha_[i] -= factor_[j * n + i] * alpha_[j];
      alpha_[i] /= factor_[i * n + i];
    }
    return -0.5 * square - log_determinant;
  }

  std::vector<Features> x_;
  std::vector<double> y_;
  Weights weights_;
  double log_likelihood_ = 0;
  std::vector<double> factor_;  // of the covariance: lower triangle, by rows
  std::vector<double> alpha_;
};

// The weights under which the data is most likely, coordinate by coordinate.
Weights LearnWeights(const std::vector<Features>& x, const std::vector<double>& y) {
  Weights weights(x.front().size(), 1.0);
  double best = GaussianProcess(x, y, weights).log_likelihood();
  for (int sweep = 0; sweep < 2; ++sweep)
    for (double& weight : weights)
      for (const double factor : {0.25, 4.0}) {
        const double before = weight;
        weight = std::clamp(weight * factor, 1e-3, 1e2);
        const double likelihood = GaussianProcess(x, y, weights).log_likelihood();
        if (likelihood > best)
          best = likelihood;
        else
          weight = before;
      }
  return weights;
}

// Logarithms of the ratios, with mean 0 and deviation 1. Failures are a little worse than the
// worst that ran.
std::vector<double> Targets(const std::vector<TunerTrial>& trials) {
  double worst = 0;
  for (const TunerTrial& trial : trials)
    if (trial.ratio > 0) worst = std::min(worst, std::log(trial.ratio));
  std::vector<double> targets;
  for (const TunerTrial& trial : trials)
    targets.push_back(trial.ratio > 0 ? std::log(trial.ratio) : worst - 0.3);
  const auto n = static_cast<double>(targets.size());
  const double mean = std::accumulate(targets.begin(), targets.end(), 0.0) / n;
  double square = 0;
  for (double& target : targets) {
    target -= mean;
    square += target * target;
  }
  const double deviation = std::sqrt(square / n);
  for (double& target : targets) target /= deviation > 0 ? deviation : 1;
  return targets;
}

double ExpectedImprovement(const GaussianProcess::Prediction& at, double best) {
  const double z = (at.mean - best) / at.deviation;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  return at.deviation * (z * std::erfc(-z / std::numbers::sqrt2) / 2 + density);
}

std::vector<TunePoint> Candidates(const TunerKnowledge& known,
                                  const std::vector<TunerTrial>& trials, StepRandom& random) {
  std::vector<TunePoint> candidates = CountPoints(known.space()) <= 2 * kCandidatesMax
                                          ? known.NewPoints(2 * kCandidatesMax)
                                          : std::vector<TunePoint>();
  if (!candidates.empty()) return candidates;
  std::vector<const TunerTrial*> best;
  for (const TunerTrial& trial : trials) best.push_back(&trial);
  std::stable_sort(best.begin(), best.end(),
                   [](const TunerTrial* a, const TunerTrial* b) { return a->ratio > b->ratio; });
  for (size_t i = 0; i < kCandidatesMax; ++i) {
    // A third lies near the best ones.
    auto point =
        i % 3 == 0
            ? MutatedPoint(known, best[(i / 3) % std::min<size_t>(8, best.size())]->point, random)
            : known.RandomPoint(random);
    if (point) candidates.push_back(std::move(*point));
  }
  return candidates;
}

}  // namespace

std::optional<Choice> ChooseBySurrogate(const TunerKnowledge& known, StepRandom& random) {
  const size_t first = std::max<size_t>(kFirstMax, 2 * known.space().tunes.size());
  const auto random_choice = [&]() -> std::optional<Choice> {
    auto point = known.RandomPoint(random);
    if (!point) return std::nullopt;
    return Choice{std::move(*point), {}, "random"};
  };
  if (known.trials().size() < 3 || known.trials().size() + known.pending().size() < first)
    return random_choice();
  const size_t begin = known.trials().size() > kTrialsMax ? known.trials().size() - kTrialsMax : 0;
  const std::vector<TunerTrial> trials(known.trials().begin() + static_cast<std::ptrdiff_t>(begin),
                                       known.trials().end());
  std::vector<double> y = Targets(trials);
  std::vector<Features> x;
  for (const TunerTrial& trial : trials) x.push_back(FeaturesOf(known, trial.point));
  const double best = *std::max_element(y.begin(), y.end());
  // A part of the data says as much about the weights as all of it, in a small part of the time.
  const auto part = static_cast<std::ptrdiff_t>(x.size() - std::min(x.size(), kLearntMax));
  const Weights weights = LearnWeights({x.begin() + part, x.end()}, {y.begin() + part, y.end()});
  GaussianProcess process(x, y, weights);
  if (!known.pending().empty()) {
    // Points in hand count as the mean that is expected of them.
    for (const TunePoint& point : known.pending()) {
      x.push_back(FeaturesOf(known, point));
      y.push_back(process.At(x.back()).mean);
    }
    process = GaussianProcess(std::move(x), std::move(y), weights);
  }
  const std::vector<TunePoint> candidates = Candidates(known, trials, random);
  const TunePoint* chosen = nullptr;
  double most = -1;
  for (const TunePoint& point : candidates) {
    const double gain = ExpectedImprovement(process.At(FeaturesOf(known, point)), best);
    if (gain > most) most = gain, chosen = &point;
  }
  if (chosen == nullptr) return random_choice();
  const auto parent = static_cast<size_t>(std::max_element(y.begin(), y.end()) - y.begin());
  return Choice{*chosen, {begin + (parent < trials.size() ? parent : 0)}, "surrogate"};
}

}  // namespace assay
