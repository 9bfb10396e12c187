// A problem as the user names it, and as the reference host describes it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "wire/types.h"

namespace assay {

// What to judge against: a KernelBench-form file with the constants to change.
struct ProblemRequest {
  std::string name;  // in the suite, or the file's stem
  std::string path;
  std::string source;  // the file's content, unchanged
  int level = 0;
  std::string size;                        // named size, or empty
  std::map<std::string, std::string> set;  // NAME -> Python literal, as text
  std::string precision;                   // a class name from the suite; empty: the dtype's own
  std::string tolerance;                   // from the suite; empty: error ratios
};

// The signature of a call: inputs, parameters, outputs, in the order of the candidate ABI.
struct ProblemDescription {
  std::vector<wire::ArgumentSpec> arguments;
  bool float64_supported = true;
};

// "input x float32[1024, 1024]", for cards and error messages.
std::string DescribeArgument(const wire::ArgumentSpec& argument);

}  // namespace assay
