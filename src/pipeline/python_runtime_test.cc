#include "pipeline/python_runtime.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

// On a machine of 32 cores the reference ran into the limit of 64: it could start no thread more.
TEST(PythonRuntime, AHostMayStartAllItsThreads) {
  PythonRuntime python;
  python.executable = "/usr/bin/python3";
  for (const PythonRole role :
       {PythonRole::kReference, PythonRole::kCandidate, PythonRole::kBuild}) {
    const auto request = PythonSandbox(python, role, 127, {});
    ASSERT_TRUE(request) << request.error().message;
    EXPECT_GE(request->limits.processes, 3u * 127);
  }
}

}  // namespace
}  // namespace assay
