// Makes candidates for a whole model out of kernels: ordinary files, whole in themselves, that the
// judge takes like any other. On a CPU a Python candidate, the problem's own file with functions
// that call kernels; on a GPU one in the device form, all launches of a call in it. Pure.
#pragma once

#include <set>
#include <string>

#include "model/problem.h"
#include "swap/manifest.h"

namespace assay {

struct Composition {
  std::set<std::string> swapped;  // places
  std::string doubled;  // a place whose work is done twice, to see what it takes; empty: none
  bool traced = false;  // on a GPU: the sums of layers are outputs (in Python the problem says so)
};

// `problem`: the content of the problem's file. Errors (kUsage): a kernel that cannot be put in.
Result<std::string> ComposePython(const SwapManifest& manifest, const std::string& problem,
                                  const Composition& composition);

// `description`: of the problem, at the size that is composed. Errors (kUsage) name the step and
// what is wrong with it.
Result<std::string> ComposeDevice(const SwapManifest& manifest,
                                  const ProblemDescription& description,
                                  const Composition& composition);

// The number of layers: of the tensors that the steps of layers name, numbered from 0.
int CountLayers(const SwapManifest& manifest, const ProblemDescription& description);

}  // namespace assay
