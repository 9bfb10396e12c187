// Left out of <torch/types.h>, whole elsewhere: so there is no #pragma once here.
#ifndef ASSAY_LEAN_WITHOUT_FACTORIES
#include_next <torch/csrc/autograd/variable.h>
#endif
