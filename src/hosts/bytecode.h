// Bytecode of PyTorch and what it imports, for an installation that has none. Some installers leave
// it to the first import to compile Python's source, and no import in a sandbox may write: every
// host would compile all of it anew: PyTorch's import took 3.0 s so, and 1.5 s with its bytecode
// (bench/results/h200/where_time_goes_23_november.txt).
#pragma once

#include <filesystem>
#include <string>

#include "hosts/python_runtime.h"

namespace assay {

// Where that of all interpreters lies: below the cache folder; root's below /var/cache, since
// root's sandboxes run as another user, who cannot look into root's home.
std::filesystem::path BytecodeFolder();

// The folder in `all` of bytecode for this interpreter and PyTorch, laid out as PYTHONPYCACHEPREFIX
// wants it. Made where it is missing, by one import outside of any sandbox: some
// seconds, 15 where it was measured, once. `missing`: the path where PyTorch's own bytecode would
// lie. Empty where it cannot be made; hosts then do without.
std::string BytecodeOf(const PythonRuntime& python, const std::string& missing,
                       const std::filesystem::path& all = BytecodeFolder());

}  // namespace assay
