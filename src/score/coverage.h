// Coverage of a set of problems by k attempts at each: the measured one, the one that attempts of
// one common chance would give, and a fit that tells problems out of reach from rare successes.
// docs/score.md has the formulas. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace assay {

struct AttemptCount {
  int64_t attempts = 0, correct = 0;  // at one problem
};

// A share of problems has no chance at all; that of the others is drawn from a beta distribution.
struct CoverageFit {
  double out_of_reach = 0;   // the share without a chance
  double low = 0, high = 1;  // its 95% interval, by the profile of the likelihood
  double alpha = 0, beta = 0;
  // Of the most likely parameters, and of those among which every problem has a chance.
  double log_likelihood = 0, log_likelihood_in_reach = 0;

  // The share of problems that k attempts at each solve.
  double At(int64_t k) const;
};

// By maximum likelihood. nullopt: fewer than 5 problems with attempts, none with more than one
// attempt, or nothing is correct: the data say nothing of chances.
std::optional<CoverageFit> FitCoverage(std::span<const AttemptCount> problems);

struct CoverageRow {
  int64_t k = 1;
  double measured = 0;  // mean of PassAtK
  double common = 0;    // 1 - (1 - p)^k, with p the share of correct attempts
  double fitted = 0;
};
struct Coverage {
  int64_t problems = 0;  // with attempts
  double correct = 0;    // p: the mean over problems of the share of correct attempts
  CoverageFit fit;
  std::vector<CoverageRow> rows;  // k = 1, 2, 5, 10, 20... as far as every problem has attempts
};
// nullopt: as above.
std::optional<Coverage> CoverageOf(std::span<const AttemptCount> problems);

}  // namespace assay
