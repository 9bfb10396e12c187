#include "report/online_softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace assay {

std::vector<OnlineStep> OnlineSoftmaxSteps(std::span<const std::vector<double>> tiles) {
  std::vector<OnlineStep> steps;
  double maximum = -std::numeric_limits<double>::infinity(), sum = 0;
  for (const std::vector<double>& tile : tiles) {
    ASSAY_CHECK(!tile.empty());
    const double larger = std::max(maximum, *std::max_element(tile.begin(), tile.end()));
    const double factor = std::exp(maximum - larger);
    sum *= factor;
    for (const double x : tile) sum += std::exp(x - larger);
    maximum = larger;
    steps.push_back({maximum, factor, sum});
  }
  return steps;
}

std::vector<double> OnlineSoftmax(std::span<const std::vector<double>> tiles) {
  const std::vector<OnlineStep> steps = OnlineSoftmaxSteps(tiles);
  std::vector<double> weights;
  for (const std::vector<double>& tile : tiles)
    for (const double x : tile)
      weights.push_back(std::exp(x - steps.back().maximum) / steps.back().sum);
  return weights;
}

std::vector<double> TwoPassSoftmax(std::span<const std::vector<double>> tiles) {
  std::vector<double> all;
  for (const std::vector<double>& tile : tiles) all.insert(all.end(), tile.begin(), tile.end());
  ASSAY_CHECK(!all.empty());
  const double maximum = *std::max_element(all.begin(), all.end());
  double sum = 0;
  for (const double x : all) sum += std::exp(x - maximum);
  for (double& x : all) x = std::exp(x - maximum) / sum;
  return all;
}

}  // namespace assay
