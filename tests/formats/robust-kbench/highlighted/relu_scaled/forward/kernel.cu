#include <torch/extension.h>

torch::Tensor forward(torch::Tensor x, torch::Tensor weight) {
  return torch::clamp(x, 0) * weight;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward, "relu, scaled"); }
