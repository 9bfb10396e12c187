// Facts about problems and programs that were not judged: a problem's work and the profile of its
// reference (made by studies/inspect.h), and a program's first calls (studies/first_calls.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/problem.h"

namespace assay {

struct OperatorTime {
  std::string name;
  double calls = 0;
  double self_ns = 0;  // of one forward, without nested operators
};

struct Profile {
  double wall_ns = 0;                   // one forward, median, without the profiler
  std::vector<OperatorTime> operators;  // longest first
};

struct Inspection {
  WorkAccount account;
  uint64_t input_bytes = 0, parameter_bytes = 0, output_bytes = 0;
  uint64_t device_bytes = 0;  // of a GPU that judges it, at least
  std::optional<Profile> profile;
  std::string torch_version;  // of the interpreter that was asked
};

struct FirstCalls {
  std::string candidate;             // its file's name
  std::vector<double> reference_ns;  // eager PyTorch, call by call, by the judge's clock
  std::vector<double> candidate_ns;
};

}  // namespace assay
