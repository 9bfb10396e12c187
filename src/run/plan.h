// The plan of a run: which candidates are judged against which problems (docs/run.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/problem.h"
#include "problem/suite.h"
#include "toolchain/build.h"

namespace assay {

struct RunProblem {
  std::string name;    // "23_Softmax", or the suite's name
  int level = 0;       // 0: none
  int64_t number = 0;  // KernelBench's, of its level; 0: none
  ProblemChoice choice;
  std::string hash;            // SHA-256 of the file
  std::string mechanism = {};  // as suite.toml names it; or empty
};

struct RunItem {
  size_t problem = 0;      // index into RunPlan::problems
  int64_t sample = 0;      // number of the attempt at this problem, from 0
  CandidateSource source;  // as it was when the plan was made
};

struct RunPlan {
  std::vector<RunProblem> problems;  // by level and number, or by name
  std::vector<RunItem> items;        // by problem and sample
  // A line for each thing that was asked for and cannot be judged, with its file.
  std::vector<std::string> troubles;
};

struct PlanRequest {
  std::vector<std::string> paths;  // a folder, candidates, or one manifest (.jsonl)
  // A checkout of KernelBench, a suite, or a folder of problems; empty: the installed suites.
  std::string problems;
  std::string size;   // named size of suites
  std::string sizes;  // file with constants by level and problem; or empty
  std::string only;   // pattern of candidates' file names, with * and ?; or empty
  std::vector<std::string> suite_folders;  // of installed suites
  bool gradients = false;                  // of every problem, too (--grad)
};

// Reads all candidates and problems. Errors (kUsage): a path that does not exist, no candidate at
// all, no folder of problems where names need one. A fault of one candidate, problem or line is a
// trouble of the plan.
Result<RunPlan> MakeRunPlan(const PlanRequest& request);

// What KernelBench calls a candidate's file: level_1_problem_23_sample_0_kernel.py.
struct SampleName {
  int level = 0;
  int64_t problem = 0, sample = 0;
};
std::optional<SampleName> ParseSampleName(std::string_view file_name);

}  // namespace assay
