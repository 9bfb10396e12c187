// assay search: proposes candidates for a problem, judges them, and keeps all in the archive.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/options.h"
#include "propose/make_proposer.h"

namespace assay {

struct SearchOptions {
  ClusterOptions cluster;
  ProblemOptions problem;
  std::vector<std::string> strategies = {"evolve"};  // several: compared at the same budget
  std::string proposer = "tuner", from;
  ProposerOptions proposing;
  std::string form = "native", prompts;
  std::vector<std::string> ports;  // verdicts: VERDICT, VERDICT@ARCHIVE
  int64_t prompt_tokens = 16'000, answer_tokens = 16'384;
  double temperature = 1;
  int64_t askers = 4;  // answers that are awaited at a time
  std::string budget = "evals=64";
  uint64_t seed = 0;  // 0: a fresh one
  int64_t finalists = 3, width = 8, chains = 4, turns = 4;
  std::vector<std::string> devices;  // empty: where the candidate's form runs
  AskedTerms asked;                  // but for the problem and the device
  std::string archive, out;
  std::string resume;              // an id; "newest"
  bool resumes = false;            // --resume was given
  std::string replay;              // an id; "newest"
  bool replays = false;            // --replay was given
  std::string verdicts;            // an archive, whose verdicts take the place of judging
  std::vector<std::string> steer;  // an action and its text; empty: run the search
  bool no_race = false, judge_again = false;
  bool jsonl = false, quiet = false, verbose = false, allow_weak_sandbox = false;

  void AddTo(CLI::App& command);
};

int RunSearch(const SearchOptions& options);

}  // namespace assay
