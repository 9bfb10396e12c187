// Reads YAML and Parquet by Python's packages, in the sandbox.
#pragma once

#include "formats/imported.h"
#include "hosts/python_runtime.h"

namespace assay {

// A reader that runs host/python/foreign.py. The sandbox must have been required before.
ForeignReader ReaderInSandbox(const PythonRuntime& python);

// The name of foreign.py below the support folder.
inline constexpr const char* kForeignReaderFile = "python/foreign.py";

}  // namespace assay
