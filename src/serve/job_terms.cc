#include "serve/job_terms.h"

#include <fmt/format.h>

#include <map>
#include <string>

#include "serve/jobs.h"

namespace assay {
namespace {

using Constants = std::map<std::string, std::string>;

constexpr const char* kAgainst = "against";
constexpr const char* kDefaultBaseline = "eager";
constexpr const char* kDefaultTolerance = "error-ratio";

std::string TextOf(const Constants& constants) {
  std::string text;
  for (const auto& [name, value] : constants)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, value);
  return text.empty() ? "the file's own constants" : text;
}

// As problem/resolve.h makes them of a size and of single constants.
Constants ConstantsOf(const Job& job, const OfferedProblem& problem) {
  Constants constants;
  if (const auto size = problem.facts.sizes.find(job.size); size != problem.facts.sizes.end())
    constants = size->second;
  for (const auto& [name, value] : job.set) constants[name] = value;
  return constants;
}

Result<void> CheckSize(const Job& job, const OfferedProblem& problem, const ProblemRecord& judged) {
  const Constants asked = ConstantsOf(job, problem);
  if (judged.set != asked)
    return UsageError(fmt::format("this verdict is at another size than the job's: {}, not {}",
                                  TextOf(judged.set), TextOf(asked)));
  if (!judged.size.empty() && (judged.size != job.size || !job.set.empty()))
    return UsageError(
        fmt::format("this verdict says that it is of the size {}, not the job's", judged.size));
  return {};
}

Result<void> CheckOpponent(const Job& job, const Verdict& verdict) {
  const bool is_against = verdict.speed && verdict.speed->against;
  const std::string opponent = is_against ? verdict.speed->against->hash : "";
  if (verdict.speed && opponent != job.opponent_hash)
    return UsageError("this verdict is against another opponent than the job's");
  return {};
}

std::unexpected<Error> Contradiction(const std::string& what) {
  return UsageError("this verdict contradicts itself: " + what);
}

// A judge computes all of these from the same pairs; made-up numbers may disagree.
Result<void> CheckResult(Outcome outcome, double threshold, const BaselineResult& result) {
  if (OutcomeName(outcome) != result.decision)
    return Contradiction(fmt::format("its outcome is {}, and its decision {}", OutcomeName(outcome),
                                     result.decision));
  if (!(result.speedup > 0 && result.time_ns > 0 && result.candidate_time_ns > 0))
    return Contradiction("a time or its speedup is no positive number");
  // A clear case has no interval. NaN compares as false.
  if (result.speedup < result.ci_low || result.speedup > result.ci_high)
    return Contradiction("its speedup lies outside its interval");
  if (result.certified_speedup > result.speedup)
    return Contradiction("more than its speedup is certified");
  // 0: an earlier version of the program, which certifies the threshold.
  if (outcome == Outcome::kFaster && result.certified_speedup != 0 &&
      !(result.certified_speedup > threshold))
    return Contradiction("it is faster, and no gain is certified");
  return {};
}

Result<void> CheckCoherence(const Verdict& verdict) {
  const bool passed = verdict.correctness && verdict.correctness->passed;
  if (IsCorrect(verdict.outcome) && !passed)
    return Contradiction(
        fmt::format("it is {}, and did not pass gate 1", OutcomeName(verdict.outcome)));
  if (!IsCorrect(verdict.outcome) || !verdict.speed) return {};
  const Speed& speed = *verdict.speed;
  const auto headline = speed.baselines.find(speed.headline);
  if (headline == speed.baselines.end())
    return Contradiction("it has no result for the baseline that decides");
  return CheckResult(verdict.outcome, speed.threshold, headline->second);
}

}  // namespace

Result<void> CheckJobTerms(const Job& job, const OfferedProblem* problem, const Verdict& verdict) {
  if (verdict.candidate.hash != job.source_hash)
    return UsageError("this verdict is on another source than the job's");
  if (problem != nullptr && verdict.problem.hash != problem->hash)
    return UsageError(
        fmt::format("this verdict is on another file than the server's of the problem {}: give the "
                    "runner the same version",
                    job.problem));
  if (problem != nullptr && verdict.problem.name != job.problem)
    return UsageError(fmt::format("this verdict calls the problem {}, and not {}",
                                  verdict.problem.name, job.problem));
  if (problem != nullptr) ASSAY_RETURN_IF_ERROR(CheckSize(job, *problem, verdict.problem));
  ASSAY_RETURN_IF_ERROR(CheckOpponent(job, verdict));
  if (verdict.outcome == Outcome::kCorrect)
    return UsageError("this verdict is of correctness alone, and the job asks for speed, too");
  if (verdict.speed && verdict.speed->threshold != 1)
    return UsageError(
        fmt::format("this verdict asks for more than {} times the speed, the job for "
                    "more than 1",
                    verdict.speed->threshold));
  const std::string baseline = job.opponent_hash.empty() ? kDefaultBaseline : kAgainst;
  if (verdict.speed && verdict.speed->headline != baseline)
    return UsageError(fmt::format("this verdict is against the baseline {}, the job's is {}",
                                  verdict.speed->headline, baseline));
  ASSAY_RETURN_IF_ERROR(CheckCoherence(verdict));
  if (DeviceNeededBy(job.name) == "cuda" && verdict.machine.gpu.empty())
    return UsageError("this verdict on CUDA code was not made on a GPU");
  if (problem == nullptr || !verdict.correctness) return {};
  const std::string& own = problem->facts.tolerance;
  const std::string& tolerance = verdict.correctness->tolerance;
  if (tolerance != (own.empty() ? kDefaultTolerance : own) && tolerance != kByOwnCheck)
    return UsageError(
        fmt::format("this verdict is by the tolerance {}, which is not the problem's", tolerance));
  return {};
}

}  // namespace assay
