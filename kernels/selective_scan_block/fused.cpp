// A selective state space block in one go: products in register tiles, the scan vectorised over the
// channels.
//
// Idea: PyTorch's scan is a loop in Python over the positions, four small operators each, around
// two tensors of BATCH * SEQUENCE * INNER * STATES numbers that are written out before it. Channels
// do not depend on one another: here one position after the other updates the states of all
// channels, which stay in the L1 cache, and decays are computed where they are used. With the
// flags the compiler vectorises loops that select values.
// expected: faster at small
//! flags -fno-trapping-math -fno-math-errno
#include <assay/kernel.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
constexpr int kWide = 4;  // vectors of a tile
constexpr int kTile = kWide * kLanes;

typedef float Vector __attribute__((vector_size(4 * kLanes)));

Vector Load(const float* from) {
  Vector value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

void Store(float* to, Vector value) { __builtin_memcpy(to, &value, sizeof value); }

int64_t WholeTiles(int64_t count) { return (count + kTile - 1) / kTile * kTile; }

// Room that is kept from call to call.
float* Room(std::vector<float>& scratch, int64_t count) {
  if (scratch.size() < static_cast<size_t>(count)) scratch.resize(static_cast<size_t>(count));
  return scratch.data();
}

// The weights of a linear layer, (outputs, inputs), turned: the outputs of an input lie side by
// side and are filled up to whole tiles.
struct Turned {
  int64_t inputs = 0;
  int64_t width = 0;
  std::vector<float> values;

  void Take(assay::Tensor<const float, 2> weights) {
    inputs = weights.size(1);
    width = WholeTiles(weights.size(0));
    values.resize(static_cast<size_t>(inputs * width));
    for (int64_t output = 0; output < weights.size(0); ++output) {
      for (int64_t input = 0; input < inputs; ++input) {
        values[static_cast<size_t>(input * width + output)] = weights(output, input);
      }
    }
  }
};

// kRows rows of x times one tile of the weights: the sums stay in registers.
template <int kRows>
void Tile(const float* x, int64_t x_stride, const Turned& weights, int64_t first, float* out) {
  Vector sums[kRows][kWide] = {};
  const float* from = weights.values.data() + first;
  for (int64_t input = 0; input < weights.inputs; ++input, from += weights.width) {
#pragma GCC unroll 4
    for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 4
      for (int i = 0; i < kWide; ++i) {
        sums[row][i] += x[row * x_stride + input] * Load(from + i * kLanes);
      }
    }
  }
  for (int row = 0; row < kRows; ++row) {
    for (int i = 0; i < kWide; ++i) {
      Store(out + row * weights.width + first + i * kLanes, sums[row][i]);
    }
  }
}

// out: (rows, weights.width).
void Multiply(const float* x, int64_t rows, int64_t x_stride, const Turned& weights, float* out) {
  for (int64_t first = 0; first < weights.width; first += kTile) {
    int64_t row = 0;
    for (; row + 4 <= rows; row += 4) {
      Tile<4>(x + row * x_stride, x_stride, weights, first, out + row * weights.width);
    }
    for (; row < rows; ++row) {
      Tile<1>(x + row * x_stride, x_stride, weights, first, out + row * weights.width);
    }
  }
}

// exp(x), to about 1 unit in the last place, without a branch, so that loops over it vectorise:
// x = n ln 2 + r, exp(r) by a polynomial, scaled by 2^n. Zero and infinity where float32 ends, so
// that what is divided by it vanishes, however large it is.
inline float Exponential(float x) {
  constexpr float kLowest = -87.0f;
  constexpr float kHighest = 88.37f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number
  float clamped = x < kLowest ? kLowest : x;
  clamped = clamped > kHighest ? kHighest : clamped;
  const float shifted = clamped * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = clamped - n * 0.693359375f + n * 2.12194440e-4f;
  float p = r * 1.3888889e-3f + 8.3333333e-3f;
  p = p * r + 4.1666667e-2f;
  p = p * r + 1.6666667e-1f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const float scaled = p * std::bit_cast<float>((std::bit_cast<int32_t>(shifted) + 127) << 23);
  const float bounded = x > kHighest ? std::numeric_limits<float>::infinity() : scaled;
  return x < kLowest ? 0.0f : bounded;
}

inline float Silu(float x) { return x / (1.0f + Exponential(-x)); }

// log(1 + exp(x)), by 2 atanh(s) = log((1 + s) / (1 - s)) with s at most 1/3.
inline float Softplus(float x) {
  const float small = Exponential(x < 0.0f ? x : -x);
  const float s = small / (2.0f + small);
  const float square = s * s;
  float p = square * (1.0f / 15) + 1.0f / 13;
  p = p * square + 1.0f / 11;
  p = p * square + 1.0f / 9;
  p = p * square + 1.0f / 7;
  p = p * square + 1.0f / 5;
  p = p * square + 1.0f / 3;
  p = p * square + 1.0f;
  return (x < 0.0f ? 0.0f : x) + 2.0f * s * p;
}

// One state of every channel takes a step, and adds what is read of it to the results.
void Step(const float* __restrict__ steps, const float* __restrict__ taken,
          const float* __restrict__ rates, float write, float read, int64_t channels,
          float* __restrict__ state, float* __restrict__ results) {
  for (int64_t i = 0; i < channels; ++i) {
    state[i] = Exponential(-steps[i] * rates[i]) * state[i] + taken[i] * write;
    results[i] += state[i] * read;
  }
}

// The causal convolution of every channel, then SiLU; rows before the first count as zero.
// projected, inner: a row a position; filters: (channels, 1, kernel).
void Convolve(const float* projected, int64_t stride, assay::Tensor<const float, 3> filters,
              assay::Tensor<const float, 1> bias, int64_t sequence, float* inner) {
  const int64_t channels = filters.size(0);
  const int64_t kernel = filters.size(2);
  const float* taps = filters.data();
  for (int64_t position = 0; position < sequence; ++position) {
    float* __restrict__ sums = inner + position * channels;
    std::copy(bias.data(), bias.data() + channels, sums);
    for (int64_t tap = 0; tap < kernel; ++tap) {
      const int64_t source = position + tap - (kernel - 1);
      if (source < 0) continue;
      const float* from = projected + source * stride;
      for (int64_t i = 0; i < channels; ++i) sums[i] += from[i] * taps[i * kernel + tap];
    }
    for (int64_t i = 0; i < channels; ++i) sums[i] = Silu(sums[i]);
  }
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 3> x, assay::Tensor<const float, 2> log_rate,
             assay::Tensor<const float, 1> skip, assay::Tensor<const float, 2> project_in_weight,
             assay::Tensor<const float, 3> convolution_weight,
             assay::Tensor<const float, 1> convolution_bias,
             assay::Tensor<const float, 2> select_weight, assay::Tensor<const float, 2> step_weight,
             assay::Tensor<const float, 1> step_bias,
             assay::Tensor<const float, 2> project_out_weight, assay::Tensor<float, 3> out) {
  static Turned project_in, select, step, project_out;
  static std::vector<float> rooms[8];
  const int64_t sequence = x.size(1);
  const int64_t features = x.size(2);
  const int64_t channels = log_rate.size(0);
  const int64_t states = log_rate.size(1);
  const int64_t rank = step_weight.size(1);
  project_in.Take(project_in_weight);
  select.Take(select_weight);
  step.Take(step_weight);
  project_out.Take(project_out_weight);
  float* projected = Room(rooms[0], sequence * project_in.width);
  float* inner = Room(rooms[1], sequence * channels);
  float* selected = Room(rooms[2], sequence * select.width);
  float* steps = Room(rooms[3], sequence * step.width);
  float* rates = Room(rooms[4], states * channels);
  float* state = Room(rooms[5], states * channels);
  float* taken = Room(rooms[6], channels);
  float* mixed = Room(rooms[7], sequence * project_out.width);
  for (int64_t i = 0; i < states * channels; ++i) {
    rates[i] = Exponential(log_rate(i % channels, i / channels));
  }
  for (int64_t image = 0; image < x.size(0); ++image) {
    const float* from = x.data() + image * sequence * features;
    Multiply(from, sequence, features, project_in, projected);
    Convolve(projected, project_in.width, convolution_weight, convolution_bias, sequence, inner);
    Multiply(inner, sequence, channels, select, selected);
    Multiply(selected, sequence, select.width, step, steps);
    std::fill(state, state + states * channels, 0.0f);
    for (int64_t position = 0; position < sequence; ++position) {
      float* __restrict__ in = inner + position * channels;
      float* __restrict__ now = steps + position * step.width;
      float* __restrict__ results = projected + position * project_in.width;  // read already
      const float* gate = results + channels;
      const float* write = selected + position * select.width + rank;
      for (int64_t i = 0; i < channels; ++i) {
        now[i] = Softplus(now[i] + step_bias.data()[i]);
        taken[i] = now[i] * in[i];
        results[i] = skip.data()[i] * in[i];
      }
      for (int64_t s = 0; s < states; ++s) {
        Step(now, taken, rates + s * channels, write[s], write[states + s], channels,
             state + s * channels, results);
      }
      for (int64_t i = 0; i < channels; ++i) in[i] = results[i] * Silu(gate[i]);
    }
    Multiply(inner, sequence, channels, project_out, mixed);
    for (int64_t position = 0; position < sequence; ++position) {
      const float* row = mixed + position * project_out.width;
      std::copy(row, row + features, &out(image, position, 0));
    }
  }
}
