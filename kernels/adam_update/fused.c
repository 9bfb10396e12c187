/* One step of AdamW in one pass, in C: four tensors read once, three written once.
 *
 * Idea: PyTorch runs some fifteen operators, each of which reads and writes whole tensors. Here
 * everything in between stays in registers: what is left is the memory that the problem itself
 * demands. All that depends on the step and the learning rate alone is worked out once, in double.
 * The flags let the compiler vectorise the square root, which would set errno.
 */
/* expected: faster at small */
/*! flags -fno-math-errno -fno-trapping-math -lm */
#include <assay/kernel.h>
#include <math.h>

/* DECAY_FIRST, DECAY_SECOND, WEIGHT_DECAY and EPSILON of the problem file. */
static const double decay_first = 0.9;
static const double decay_second = 0.999;
static const double weight_decay = 0.1;
static const float epsilon = 1e-8f;

ASSAY_KERNEL_C(ASSAY_TENSOR(const float, 2, weights), ASSAY_TENSOR(const float, 2, gradient),
               ASSAY_TENSOR(const float, 2, first_moment),
               ASSAY_TENSOR(const float, 2, second_moment), ASSAY_SCALAR(double, learning_rate),
               ASSAY_SCALAR(int64_t, step), ASSAY_TENSOR(float, 2, out),
               ASSAY_TENSOR(float, 2, out1), ASSAY_TENSOR(float, 2, out2)) {
  const int64_t count = weights_size[0] * weights_size[1];
  const float keep_first = (float)decay_first;
  const float take_first = (float)(1 - decay_first);
  const float keep_second = (float)decay_second;
  const float take_second = (float)(1 - decay_second);
  const float keep_weight = (float)(1 - learning_rate * weight_decay);
  const float rate = (float)(learning_rate / (1 - pow(decay_first, (double)step)));
  const float correction = (float)(1 / (1 - pow(decay_second, (double)step)));
  for (int64_t i = 0; i < count; ++i) {
    const float first = keep_first * first_moment[i] + take_first * gradient[i];
    const float second = keep_second * second_moment[i] + take_second * gradient[i] * gradient[i];
    out[i] = keep_weight * weights[i] - rate * first / (sqrtf(second * correction) + epsilon);
    out1[i] = first;
    out2[i] = second;
  }
}
