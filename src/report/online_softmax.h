// Softmax over tiles with a running maximum and sum, as FlashAttention and every one-pass softmax
// keep it. After M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018.
// Pure; for the demonstration, which shows each step.
#pragma once

#include <span>
#include <vector>

namespace assay {

// State after a tile: sum is of exp(x - maximum) over all elements so far.
struct OnlineStep {
  double maximum = 0;
  double factor = 0;  // exp(old maximum - new maximum): what the sum so far is scaled by
  double sum = 0;
};

// One step a tile. Tiles must not be empty.
std::vector<OnlineStep> OnlineSoftmaxSteps(std::span<const std::vector<double>> tiles);

// All weights, from the last step; and in the ordinary way: maximum first, then sum, then division.
std::vector<double> OnlineSoftmax(std::span<const std::vector<double>> tiles);
std::vector<double> TwoPassSoftmax(std::span<const std::vector<double>> tiles);

}  // namespace assay
