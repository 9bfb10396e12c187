#include "hosts/bytecode.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/hash.h"
#include "base/trace.h"

namespace assay {
namespace fs = std::filesystem;
namespace {

// What hosts import, or PyTorch as they use it. Python looks for bytecode below the prefix alone,
// so what is not named here is compiled in each host. torch.compile is left out: it is twice as
// much again, for baselines that few ask for.
constexpr const char* kImports = R"python(
import sys
sys.path[:] = [path for path in sys.path if path]  # not the folder where the user happens to be
import importlib
import os

def take(*names):
    for name in names:
        try:
            importlib.import_module(name)
        except Exception:
            pass

def beside(*names):
    if not os.fork():
        take(*names)
        os._exit(0)

# Imports that need each other little are compiled by processes of their own.
beside('sympy')
beside('triton', 'triton.language')
try:
    import torch
    beside('torch.utils.cpp_extension', 'torch.profiler', 'numpy', 'pickle', 'tarfile')
    take('torch._subclasses.fake_tensor', 'torch.utils._python_dispatch')
    try:  # which imports most of what it needs when it is used
        from torch._subclasses.fake_tensor import FakeTensorMode
        with FakeTensorMode():
            torch.nn.Linear(4, 4)(torch.randn(4, 4)).softmax(-1)
    except Exception:
        pass
finally:  # whoever writes there still would keep the folder from being cleared
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
)python";

bool Import(const std::string& executable, const std::string& prefix) {
  // The user's environment may forbid what is wanted here.
  return RunOutside({"/usr/bin/env", "-u", "PYTHONDONTWRITEBYTECODE",
                     "PYTHONPYCACHEPREFIX=" + prefix, "CUDA_VISIBLE_DEVICES=", executable, "-s",
                     "-c", kImports});
}

// Where PyTorch's own lies below the prefix. A full disk leaves it out, and Python says nothing.
fs::path BelowPrefix(const fs::path& prefix, const fs::path& missing) {
  return prefix / missing.parent_path().parent_path().relative_path() / missing.filename();
}

}  // namespace

std::string BytecodeOf(const PythonRuntime& python, const std::string& missing,
                       const fs::path& all) {
  const std::string key =
      Sha256Hex(fmt::format("{}\n{}\n{}\n{}\n{}", python.executable, python.version,
                            python.torch_version, missing, kImports))
          .substr(0, 16);
  return MadeOnce(all, key, [&](const fs::path& making) {
    const Span span("compile PyTorch's bytecode");
    std::error_code code;
    return Import(python.executable, making.string()) &&
           fs::exists(BelowPrefix(making, missing), code);
  });
}

}  // namespace assay
