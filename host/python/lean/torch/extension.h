// The namespace torch, and the binding to Python: in CUDA sources only if they use it.
#pragma once

#include <torch/types.h>
#if !defined(__CUDACC__) || __has_include(<assay_binding.h>)
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#endif
