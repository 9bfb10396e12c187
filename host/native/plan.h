// Checks that a plan can be served, and that a candidate's declaration fits it. Pure.
#pragma once

#include <assay/kernel.h>

#include "regions.h"
#include "text.h"
#include "wire/types.h"

namespace assay::native {

// Returns true if every argument of every slot lies inside its attached region, aligned, with the
// size of its shape and dtype. Otherwise `message` names the wrong field. Reads no byte of a slot.
bool PlanIsSound(const wire::Plan& plan, const Regions& regions, Text& message);

// Returns true if the candidate's declaration fits the plan: count, kinds, dtypes, ranks, const for
// all but outputs, and a last argument for the stream if tensors lie on a device. Otherwise
// `message` lists the differences for each argument, the candidate's declaration, and the one that
// fits.
bool SignatureFits(const AssayKernel& kernel, const wire::Plan& plan, bool on_device,
                   Text& message);

// Adds the declaration that fits the plan, in C++ or in C: "ASSAY_KERNEL(assay::Tensor<const float,
// 2> x, ...)".
void AddDeclaration(const wire::Plan& plan, AssayLanguage language, bool on_device, Text& message);

}  // namespace assay::native
