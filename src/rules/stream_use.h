// Looks at a source for work that runs on several CUDA streams. Pure.
#pragma once

#include <string>
#include <string_view>

namespace assay {

// Returns the word in a source (Python, C++ or CUDA) for which it may run on more streams than one:
// it makes streams or graphs, uses a part of PyTorch that does (cuDNN's recurrent layers, solvers),
// or imports a module that is not known. Empty: none. It looks at the text alone, so that a source
// can hide streams, which then wait for each other, and a comment can speak of them.
std::string StreamWord(std::string_view source);

}  // namespace assay
