// Tensors, the operators of <ATen/Functions.h>, dispatch by dtype, guards and checks. CUDA sources,
// which a compiler parses four times, have further parts only if they use them (parts/).
#pragma once

// PyTorch's headers then include single operators in place of all.
#ifndef AT_PER_OPERATOR_HEADERS
#define AT_PER_OPERATOR_HEADERS
#endif

#include <ATen/core/Tensor.h>
// Operators and what they stand on.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#if !defined(__CUDACC__) || __has_include(<assay_lists.h>)
#include <ATen/DeviceGuard.h>
#include <ATen/TensorIndexing.h>
#include <ATen/core/IListRef.h>
#endif
// Dispatch, guards, checks, printing.
#include <ATen/Dispatch.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/Exception.h>
#if !defined(__CUDACC__) || __has_include(<assay_context.h>)
#include <ATen/Context.h>
#include <ATen/Formatting.h>
#include <ATen/TensorUtils.h>
#include <c10/core/InferenceMode.h>
#endif
