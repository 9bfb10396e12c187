// A problem that torch.compile was asked to compile in one of its modes, and what came of it: a
// candidate, or why there is none. A line of mined.jsonl (docs/mine.md). Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/problem.h"

namespace assay {

// The code of one graph, wrapped as a candidate.
struct MinedCode {
  std::string python_code;             // the problem's file, with the constants that were changed
  std::string entry_point;             // its class
  std::string triton_code;             // the candidate
  std::string original_triton_code;    // as it was generated
  std::vector<std::string> kernels;    // of the code's own
  std::vector<std::string> libraries;  // calls of PyTorch's libraries: "extern_kernels.mm"
  std::map<std::string, std::string> versions;  // "torch", "triton"
};

struct Mined {
  std::string key;   // MineKey
  std::string date;  // ISO 8601, UTC
  std::string problem, path, size;
  std::map<std::string, std::string> set;
  std::string hash;     // SHA-256 of the problem's file
  std::string mode;     // of torch.compile
  std::string device;   // "cpu", or the GPU as Gpu::Describe has it
  std::string name;     // of the candidate's file, without .py; empty: refused
  std::string refusal;  // a sentence; empty: mined
  MinedCode code;       // empty if refused
};

// Modes of torch.compile, the first of them its default.
const std::vector<std::string>& MineModes();

// Identifies a piece of work: the same is mined once. `python`: the interpreter and its PyTorch.
std::string MineKey(const ProblemRequest& problem, std::string_view mode, std::string_view device,
                    std::string_view python);

// One line, without its end: schema assay.mined/1.
std::string MinedToJson(const Mined& mined);
// Errors (kUsage) name the field.
Result<Mined> MinedFromJson(std::string_view line);
// Returns true for the text of a whole line.
bool IsMined(std::string_view text);

// What assay_host/mine.py wrote: code, or a refusal.
struct MineAnswer {
  MinedCode code;
  std::string refusal;  // empty: mined
};
// Errors: kEnvironment, if the answer says that this machine lacks something, or is none.
Result<MineAnswer> MineAnswerFromJson(std::string_view text);

}  // namespace assay
