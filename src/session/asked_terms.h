// What somebody asked a judgement for, in the words of the command line and of a worker's requests,
// turned into the terms of a session.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "problem/suite.h"
#include "session/terms.h"

namespace assay {

struct AskedLimits {
  double timeout_s = 10, build_timeout_s = 60;
  std::string memory = "4G";
};

// Fields as `assay judge --help` explains them; empty or 0: not said.
struct AskedTerms {
  ProblemChoice problem;
  std::string baselines = "eager";  // one, several with commas, or "best"
  std::string against;              // a candidate's file
  double threshold = 1;
  int threads = 0;
  std::string python, precision, tolerance, weights, device;
  uint64_t seed = 0;
  Effort effort;  // but for the replays
  AskedLimits limits;
  bool one_size = false, no_replay = false;
};

// The terms for judging these candidates. Errors (kUsage) say which field is wrong, and how.
Result<SessionTerms> ResolveTerms(const AskedTerms& asked,
                                  std::span<const CandidateSource> candidates);

// Folders with installed suites, nearest first: the working folder's problems/, then those beside
// the program.
std::vector<std::string> SuiteFolders();

// "512M", "4G", "4GiB" or plain bytes; `option` names it in the error.
Result<uint64_t> ParseBytes(const std::string& text, const std::string& option);

}  // namespace assay
