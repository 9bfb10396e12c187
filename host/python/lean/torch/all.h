// Without PyTorch's C++ frontend (torch/nn.h, torch/optim.h and others).
#pragma once

#include <torch/types.h>
