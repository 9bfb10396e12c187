// A problem as the user names it, and as the reference host describes it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/kinds.h"
#include "wire/types.h"

namespace assay {

// The problem to judge against: a KernelBench-form file with the constants to change.
struct ProblemRequest {
  std::string name;  // in the suite, or the file's stem
  std::string path;
  std::string source;  // the file's content, unchanged
  int level = 0;
  std::string size;                        // named size, or empty
  std::map<std::string, std::string> set;  // NAME -> Python literal, as text
  std::string precision;                   // a class name from the suite; empty: the dtype's own
  std::string tolerance;                   // from the suite; empty: error ratios
  // Operations and compulsory bytes of one call, if the suite gives them: arithmetic on the file's
  // constants, as text. The reference host evaluates it.
  std::string flops, bytes;
  std::string operands;  // dtype of what is multiplied, likewise; empty: that of the first output
  std::vector<std::string> skip_draws;  // kinds of draws that gate 1 leaves out
  std::string special_values;           // on NaN and infinities: "required", "noted", or empty
  WeightsKind weights = WeightsKind::kVaried;
  bool ignores_state = false;  // what forward changes in its module is not compared
  std::map<std::string, std::pair<int64_t, int64_t>> ragged;  // NAME -> range, ends included
  std::string device = "cpu";                                 // to judge on: "cpu" or "cuda"
  bool allow_libraries = true;  // false: time in foreign libraries is a foul
};

// The signature of a call: inputs, parameters, outputs, in the order of the candidate ABI.
inline constexpr std::string_view kSameValues = "get_inputs gives the same values under every seed";

struct ProblemDescription {
  std::vector<wire::ArgumentSpec> arguments;
  bool float64_supported = true;
  uint64_t float64_pieces = 0;  // of the batch, one after the other; 0: float64 runs on it whole
  bool own_check = false;       // its file has a check(inputs, outputs), which says what is right
  bool changes_state = false;   // forward changes tensors of its module
  // get_inputs() gives the same values under every seed; own_values: the judge's take their place.
  bool same_values = false, own_values = false;
  bool asks_for_nan = false;  // forward asks which elements are NaN or infinite
  // A note for verdicts on inputs that are not contiguous and weights that never vary; or empty.
  std::string layouts;
};

// One operator of the reference: sums over its calls in one forward.
struct OperatorWork {
  std::string name;  // PyTorch's: "addmm", "native_layer_norm"
  double calls = 0;
  double operations = 0;
  double read_bytes = 0;
  double written_bytes = 0;
};

// The work of one call, as the reference host counts it without running the problem.
struct WorkAccount {
  std::vector<std::string> inputs, parameters, outputs;  // "x float32[1024, 2048]"
  std::optional<double> suite_operations, suite_bytes;   // the suite's figures, evaluated
  bool forward_known = false;           // false: forward cannot be followed without running it
  double peak_bytes = 0;                // most bytes alive inside forward; 0: not known
  std::vector<OperatorWork> operators;  // in the order in which they first run; empty: not known
};

// Returns "input x float32[1024, 1024]", for cards and error messages.
std::string DescribeArgument(const wire::ArgumentSpec& argument);

}  // namespace assay
