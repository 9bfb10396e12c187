// The programs that `assay explain` writes: one call of a candidate on a draw that the oracle's
// slot 0 holds, with files that WriteTensors has written.
#pragma once

#include <string>

#include "values/oracle.h"

namespace assay {

// The file of a tensor's bytes: "x.bin", "expected_out.bin".
std::string FileName(const wire::ArgumentSpec& argument);

// main.cpp: the call of a native candidate, in buffers of exact size between guards.
std::string ProgramInCpp(const Oracle& oracle);

// run.py: the call of a Python candidate, which lies beside it with a copy of assay_host.
// `settings`: of its host.
std::string ScriptInPython(const Oracle& oracle, const std::string& settings);

}  // namespace assay
