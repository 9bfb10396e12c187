// The namespace torch over ATen, without the registration of operators (torch/library.h). In CUDA
// sources without the factories that set requires_grad: torch::zeros() is at::zeros().
#pragma once

#include <ATen/ATen.h>
#if !defined(__CUDACC__) || __has_include(<assay_factories.h>)
#include <ATen/core/LegacyTypeDispatch.h>
#else
#define ASSAY_LEAN_WITHOUT_FACTORIES
#endif

#define ASSAY_LEAN_INSIDE_TYPES
#include_next <torch/types.h>
#undef ASSAY_LEAN_INSIDE_TYPES
#undef ASSAY_LEAN_WITHOUT_FACTORIES
