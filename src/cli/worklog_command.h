// assay worklog: a match against a machine, and its diary.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/options.h"
#include "propose/make_proposer.h"

namespace assay {

// --in and --archive.
struct WorklogPlace {
  std::string folder = ".", archive;

  void AddTo(CLI::App& command);
};

struct WorklogInitOptions {
  ProblemOptions problem;
  WorklogPlace place;
  std::string author, mechanism;
  int tier = 0;  // 0: by the problem's level
  bool suggest = false;
  AskedTerms asked;  // but for the problem

  void AddTo(CLI::App& command);
};

struct WorklogPredictOptions {
  WorklogPlace place;
  std::string regime, because;
  double ratio = 0;

  void AddTo(CLI::App& command);
};

struct WorklogAttemptOptions {
  WorklogPlace place;
  std::string file, why;
  std::vector<std::string> mechanisms;
  double budget_s = 0;  // 0: as when the match began
  bool quiet = false, allow_weak_sandbox = false;

  void AddTo(CLI::App& command);
};

struct WorklogModelOptions {
  WorklogPlace place;
  std::string proposer, form = "native", prompts, prompt, answer;
  ProposerOptions proposing;
  int64_t attempts = 4, prompt_tokens = 16'000, answer_tokens = 16'384;
  double temperature = 1, budget_s = 0;
  bool quiet = false, allow_weak_sandbox = false;

  void AddTo(CLI::App& command);
};

struct WorklogTogetherOptions {
  WorklogAttemptOptions attempt;
  std::string prompt, answer;

  void AddTo(CLI::App& command);
};

struct WorklogDuelOptions {
  WorklogPlace place;
  std::string version, other;  // empty: the best of each side
  double budget_s = 0;         // 0: as when the match began
  bool quiet = false, allow_weak_sandbox = false;

  void AddTo(CLI::App& command);
};

struct WorklogAlsoOptions {
  WorklogPlace place;
  std::vector<std::string> verdicts;
  std::string why;

  void AddTo(CLI::App& command);
};

struct WorklogStatusOptions {
  WorklogPlace place;

  void AddTo(CLI::App& command);
};

struct WorklogStuckOptions {
  WorklogPlace place;
  std::string player, text;

  void AddTo(CLI::App& command);
};

struct WorklogClaimOptions {
  WorklogPlace place;
  std::string version, mechanism, text;

  void AddTo(CLI::App& command);
};

struct WorklogRenderOptions {
  WorklogPlace place;
  bool present = false;

  void AddTo(CLI::App& command);
};

struct WorklogCheckOptions {
  WorklogPlace place;

  void AddTo(CLI::App& command);
};

struct WorklogGradeOptions {
  std::vector<std::string> folders;  // empty: the place's
  WorklogPlace place;
  std::string rubric, mentor, note, lift, csv, page, sheet;
  std::vector<std::string> marks;  // KEY=POINTS
  bool evidence = false;

  void AddTo(CLI::App& command);
};

struct WorklogCertificateOptions {
  WorklogPlace place;
  std::string out;  // empty: certificate.pdf in the folder

  void AddTo(CLI::App& command);
};

int RunWorklogInit(const WorklogInitOptions& options);
int RunWorklogPredict(const WorklogPredictOptions& options);
int RunWorklogAttempt(const WorklogAttemptOptions& options);
int RunWorklogModel(const WorklogModelOptions& options);
int RunWorklogTogether(const WorklogTogetherOptions& options);
int RunWorklogDuel(const WorklogDuelOptions& options);
int RunWorklogAlso(const WorklogAlsoOptions& options);
int RunWorklogStatus(const WorklogStatusOptions& options);
int RunWorklogStuck(const WorklogStuckOptions& options);
int RunWorklogClaim(const WorklogClaimOptions& options);
int RunWorklogRender(const WorklogRenderOptions& options);
int RunWorklogCheck(const WorklogCheckOptions& options);
int RunWorklogGrade(const WorklogGradeOptions& options);
int RunWorklogCertificate(const WorklogCertificateOptions& options);

}  // namespace assay
