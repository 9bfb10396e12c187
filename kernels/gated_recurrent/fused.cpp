// Two layers of gated recurrent units and a linear layer, products in register tiles.
//
// Idea: the weights of the states are used again at every position, for few rows of the batch at a
// time. Turned once, so that the outputs lie side by side, they stay in the L2 cache, and four rows
// share each load of them; the gates of a position are computed in one loop right after its
// product. PyTorch starts some ten operators a position and layer, each for little work.
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

inline float Logistic(float x) { return 1.0f / (1.0f + Exponential(-x)); }

struct Biases {
  const float* input;
  const float* state;
};

// The next state of one row. taken, kept: what its input and its state contribute to the three
// gates (reset, update, new), `hidden` numbers each.
void Gates(const float* __restrict__ taken, const float* __restrict__ kept, Biases biases,
           int64_t hidden, float* __restrict__ state) {
  const float* b = biases.input;
  const float* c = biases.state;
  for (int64_t i = 0; i < hidden; ++i) {
    const int64_t j = hidden + i;
    const int64_t k = 2 * hidden + i;
    const float reset = Logistic((taken[i] + b[i]) + (kept[i] + c[i]));
    const float update = Logistic((taken[j] + b[j]) + (kept[j] + c[j]));
    const float argument = (taken[k] + b[k]) + reset * (kept[k] + c[k]);
    const float proposed = 2.0f * Logistic(2.0f * argument) - 1.0f;  // tanh
    state[i] = (1.0f - update) * proposed + update * state[i];
  }
}

struct Layer {
  Turned input;
  Turned state;
  std::vector<float> taken;
  std::vector<float> kept;

  // x: (batch, sequence, input.inputs). states: (batch, hidden), replaced by the last ones.
  // results: (batch, sequence, hidden).
  void Run(const float* x, int64_t batch, int64_t sequence, Biases biases, float* states,
           float* results) {
    const int64_t hidden = state.inputs;
    float* from_input = Room(taken, batch * sequence * input.width);
    float* from_state = Room(kept, batch * state.width);
    Multiply(x, batch * sequence, input.inputs, input, from_input);
    for (int64_t position = 0; position < sequence; ++position) {
      Multiply(states, batch, hidden, state, from_state);
      for (int64_t row = 0; row < batch; ++row) {
        const int64_t place = row * sequence + position;
        Gates(from_input + place * input.width, from_state + row * state.width, biases, hidden,
              states + row * hidden);
        std::copy(states + row * hidden, states + (row + 1) * hidden, results + place * hidden);
      }
    }
  }
};

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 3> x, assay::Tensor<const float, 3> states,
             assay::Tensor<const float, 2> recurrent_weight_ih_l0,
             assay::Tensor<const float, 2> recurrent_weight_hh_l0,
             assay::Tensor<const float, 1> recurrent_bias_ih_l0,
             assay::Tensor<const float, 1> recurrent_bias_hh_l0,
             assay::Tensor<const float, 2> recurrent_weight_ih_l1,
             assay::Tensor<const float, 2> recurrent_weight_hh_l1,
             assay::Tensor<const float, 1> recurrent_bias_ih_l1,
             assay::Tensor<const float, 1> recurrent_bias_hh_l1,
             assay::Tensor<const float, 2> linear_weight, assay::Tensor<const float, 1> linear_bias,
             assay::Tensor<float, 3> out, assay::Tensor<float, 3> out1) {
  static Layer layers[2];
  static Turned linear;
  static std::vector<float> rooms[3];
  const int64_t batch = x.size(0);
  const int64_t sequence = x.size(1);
  const int64_t hidden = states.size(2);
  layers[0].input.Take(recurrent_weight_ih_l0);
  layers[0].state.Take(recurrent_weight_hh_l0);
  layers[1].input.Take(recurrent_weight_ih_l1);
  layers[1].state.Take(recurrent_weight_hh_l1);
  linear.Take(linear_weight);
  const Biases first_biases{recurrent_bias_ih_l0.data(), recurrent_bias_hh_l0.data()};
  const Biases second_biases{recurrent_bias_ih_l1.data(), recurrent_bias_hh_l1.data()};
  float* first = Room(rooms[0], batch * sequence * hidden);
  float* second = Room(rooms[1], batch * sequence * hidden);
  float* results = Room(rooms[2], batch * sequence * linear.width);
  float* last = out1.data();
  std::copy(states.data(), states.data() + states.count(), last);
  layers[0].Run(x.data(), batch, sequence, first_biases, last, first);
  layers[1].Run(first, batch, sequence, second_biases, last + batch * hidden, second);
  Multiply(second, batch * sequence, hidden, linear, results);
  const int64_t outputs = linear_weight.size(0);
  for (int64_t row = 0; row < batch * sequence; ++row) {
    for (int64_t i = 0; i < outputs; ++i) {
      out.data()[row * outputs + i] = results[row * linear.width + i] + linear_bias.data()[i];
    }
  }
}
