// Left out of the operators' headers, whole elsewhere: so there is no #pragma once here.
#ifndef ASSAY_LEAN_INSIDE_OPERATORS
#include_next <ATen/DeviceGuard.h>
#endif
