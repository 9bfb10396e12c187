// Headers under PyTorch's names that include a part of the real ones (host/python/lean). The
// builder of a candidate's extensions searches them first, since parsing all of PyTorch's headers
// is most of a build's time; a build that fails so is made again with all (assay_host/lean.py).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "hosts/made_once.h"
#include "hosts/python_runtime.h"
#include "sandbox/sandbox.h"

namespace assay {

struct LeanHeaders {
  std::string folder;              // on this machine
  std::vector<SandboxFile> files;  // in the sandbox
  std::string hash;                // SHA-256 of their names and content
};

// Errors (kEnvironment): Assay's installation lacks them.
Result<LeanHeaders> ReadLeanHeaders();

// Returns a folder in `all` with GCC's precompiled form of their <torch/extension.h>, for this
// PyTorch and the compiler that a builder finds. Makes it if it is missing, outside of any sandbox,
// which takes some tens of seconds; the youngest two are kept. Returns an empty string if it cannot
// be made.
std::string PrecompiledHeaders(const PythonRuntime& python, const LeanHeaders& headers,
                               const std::filesystem::path& all = MadeFolders("headers"));

// Puts the headers into a builder's sandbox, to be searched first. `precompiled`: may be empty.
void PreferLeanHeaders(const LeanHeaders& headers, const std::string& precompiled,
                       SandboxRequest* request);

// Returns which headers of PyTorch's the extensions of a Python build's artifact were built with:
// "lean", "full", or empty if it has none. The builder runs the candidate's code, so this is not to
// be relied on.
std::string HeadersOf(std::string_view artifact);

}  // namespace assay
