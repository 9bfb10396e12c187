// Whether a plan can be served, and whether a candidate's declaration fits it. Pure.
#pragma once

#include <assay/kernel.h>

#include "regions.h"
#include "text.h"
#include "wire/types.h"

namespace assay::native {

// True when every argument of every slot lies inside its attached region, aligned and with a size
// that its shape and dtype give. Else says which field is wrong. Reads no byte of a slot.
bool PlanIsSound(const wire::Plan& plan, const Regions& regions, Text& message);

// True when the candidate declares what the plan passes: count, kinds, dtypes, ranks, and const for
// all but outputs; and a stream at the end where the tensors lie on a device. Else says for each
// argument what differs, what the candidate declares, and the line that would fit.
bool SignatureFits(const AssayKernel& kernel, const wire::Plan& plan, bool on_device,
                   Text& message);

// The declaration that fits the plan, in C++ or in C: "ASSAY_KERNEL(assay::Tensor<const float, 2>
// x, ...)".
void AddDeclaration(const wire::Plan& plan, AssayLanguage language, bool on_device, Text& message);

}  // namespace assay::native
