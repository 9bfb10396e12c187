// Left out of <torch/types.h>, whole elsewhere: so there is no #pragma once here.
#ifndef ASSAY_LEAN_INSIDE_TYPES
#include_next <ATen/core/dispatch/Dispatcher.h>
#endif
