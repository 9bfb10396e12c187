// Turns a request, in the words of the command line or of a worker's client, into the terms of a
// session.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "problem/suite.h"
#include "session/terms.h"

namespace assay {

struct AskedLimits {
  double timeout_s = 10, build_timeout_s = 0;  // 0: by the candidate's form
  std::string memory = "4G";
};

// The fields are those of `assay judge --help`; empty or 0: not given.
struct AskedTerms {
  ProblemChoice problem;
  std::string baselines = "eager";  // one, several with commas, or "best"
  std::string against;              // a candidate's file
  double threshold = 1;
  double bound = 0;  // as in Bar; 0: none

  Bar bar() const { return {threshold, bound}; }
  int threads = 0;
  std::vector<std::string> ragged;  // NAME=LO:HI, as typed
  std::string python, precision, tolerance, weights, device;
  std::string special_values;  // "required", "noted", or empty: as the problem has it
  std::string state;           // "compared", "ignored", or empty: compared
  std::string skip_draws;      // kinds, with commas
  uint64_t seed = 0;
  Effort effort;  // `no_replay` sets Effort::replay
  AskedLimits limits;
  bool one_size = false, no_replay = false;
  bool probe = false;    // ToolChoice::probes
  bool profile = false;  // ToolChoice::profiler, which must be there
};

// Returns the terms for judging these candidates. Errors (kUsage) name the wrong field and the
// fault.
Result<SessionTerms> ResolveTerms(const AskedTerms& asked,
                                  std::span<const CandidateSource> candidates);

// Returns the candidate as these terms have it: with its gradients, if they are asked for and it is
// in Python. Candidates in other forms get gradients of outputs as inputs.
Result<CandidateSource> AsAsked(CandidateSource candidate, const AskedTerms& asked);
// The same for terms that ask for gradients.
Result<CandidateSource> WithGradients(CandidateSource candidate);

// The error of an option whose tool looks at a GPU alone.
std::string NeedsGpu(std::string_view option);

// Adds kinds of draws, "ties,outlier", to those that the problem leaves out. Errors (kUsage): no
// such kind, or the ordinary one.
Result<void> AddSkippedDraws(const std::string& kinds, ProblemRequest* problem);

// Returns folders with installed suites, nearest first: the working folder's problems/, then those
// beside the program.
std::vector<std::string> SuiteFolders();

// Parses NAME=LO:HI, whole numbers from 1 on. Errors (kUsage) say how it is written.
Result<std::pair<std::string, std::pair<int64_t, int64_t>>> ParseRange(const std::string& text);

// Parses "512M", "4G", "4GiB" or plain bytes. Errors (kUsage) name `option`.
Result<uint64_t> ParseBytes(const std::string& text, const std::string& option);

}  // namespace assay
