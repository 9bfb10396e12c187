// Makes bytecode of PyTorch and its imports for an installation without any. Some installers leave
// compiling to the first import, but imports in a sandbox cannot write, so every host would compile
// all of it anew: PyTorch's import takes 3.0 s without and 1.5 s with bytecode
// (bench/results/h200/where_time_goes_23_november.txt).
#pragma once

#include <filesystem>
#include <string>

#include "hosts/made_once.h"
#include "hosts/python_runtime.h"

namespace assay {

// Returns the folder in `all` with bytecode for this interpreter and PyTorch, laid out for
// PYTHONPYCACHEPREFIX. Makes it if it is missing, by imports outside of any sandbox, which take
// some seconds. `missing`: the path of PyTorch's own bytecode, which does not exist. Returns an
// empty string if the folder cannot be made; hosts then run without.
std::string BytecodeOf(const PythonRuntime& python, const std::string& missing,
                       const std::filesystem::path& all = MadeFolders("bytecode"));

}  // namespace assay
