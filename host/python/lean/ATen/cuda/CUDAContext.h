// Streams, devices and checks; without the handles of CUDA's libraries, unless they are used.
#pragma once

#if !defined(__CUDACC__) || __has_include(<assay_libraries.h>)
#include_next <ATen/cuda/CUDAContext.h>
#else
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#endif
