#include "session/record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/version.h"
#include "machine/machine.h"
#include "model/dtype.h"
#include "rules/clock_note.h"
#include "rules/roofline.h"
#include "session/queue_choice.h"
#include "values/work_account.h"

namespace assay {

ProblemRecord RecordOf(const ProblemRequest& request, const ProblemDescription& description) {
  ProblemRecord problem;
  problem.name = request.name;
  problem.path = request.path;
  problem.hash = Sha256Hex(request.source);
  problem.level = request.level;
  problem.size = request.size;
  problem.set = request.set;
  problem.weights = WeightsTreatment(request);
  for (const wire::ArgumentSpec& argument : description.arguments) {
    problem.signature.push_back(DescribeArgument(argument));
    if (problem.dtype.empty() && argument.role == wire::Role::kOutput)
      problem.dtype = DTypeName(argument.dtype);
  }
  return problem;
}

ProblemRecord RecordOf(const ProblemRequest& request, const WorkAccount& account) {
  ProblemRecord problem = RecordOf(request, ProblemDescription{});
  for (const auto& [role, lines] : {std::pair{"input", &account.inputs},
                                    {"parameter", &account.parameters},
                                    {"output", &account.outputs}})
    for (const std::string& line : *lines)
      problem.signature.push_back(fmt::format("{} {}", role, line));
  if (!account.outputs.empty()) {
    const std::string& first = account.outputs.front();
    const size_t begin = first.find(' ') + 1;
    problem.dtype = first.substr(begin, first.find('[') - begin);
  }
  return problem;
}

ProblemFacts FactsOf(const ProblemRequest& request, const Oracle& oracle) {
  return {RecordOf(request, oracle.description()), WorkOf(oracle.description(), oracle.account())};
}

ProblemFacts FactsOf(const ProblemRequest& request, const ProblemEstimate& estimate) {
  return {RecordOf(request, estimate.account), WorkOf(estimate.call.inputs + estimate.call.weights,
                                                      estimate.call.outputs, estimate.account)};
}

Verdict NewVerdict(const SessionTerms& terms, const BuiltCandidate& candidate, ProblemFacts problem,
                   const PythonRuntime& python, uint64_t seed, int threads, const Gpu* gpu) {
  Verdict verdict;
  verdict.created = UtcTimestamp();
  verdict.seed = seed;
  verdict.problem = std::move(problem.record);
  verdict.candidate = {
      candidate.source.path,
      candidate.source.hash,
      candidate.source.form,
      LanguageFromName(candidate.source.language).value(),
      candidate.source.form == CandidateForm::kDevice ? "device-only" : "sandboxed",
      candidate.flags,
      ArtifactHash(candidate)};
  verdict.work = problem.work;
  verdict.machine = DescribeMachine();
  verdict.machine.threads = threads;
  if (gpu != nullptr) verdict.machine.gpu = gpu->Describe();
  verdict.machine.isolation = ProbeSandbox().isolation;
  verdict.machine.weak = !ProbeSandbox().self_test.breaches.empty();
  verdict.toolchain = {{"assay", std::string(kAssayVersion)},
                       {"compiler", candidate.compiler},
                       {"python", python.version},
                       {"pytorch", python.torch_version}};
  if (!candidate.source.note.empty()) verdict.toolchain["source"] = candidate.source.note;
  if (!candidate.headers.empty()) verdict.toolchain["headers"] = candidate.headers;
  if (const std::string kernels = OpenBlasKernels(); !kernels.empty())
    verdict.toolchain["openblas_kernels"] = kernels;
  if (gpu != nullptr)
    verdict.toolchain["cuda_queues"] =
        ConnectionsOf(QueuesOf(terms, candidate.source.content)).value_or("default");
  verdict.log = candidate.log;
  verdict.cost.build_s = candidate.build_s;
  verdict.cost.build_cached = candidate.cached;
  verdict.id = Sha256Hex(fmt::format("{} {} {} {} {}", verdict.created, MonotonicNs(), seed,
                                     verdict.problem.hash, verdict.candidate.hash))
                   .substr(0, 12);
  return verdict;
}

std::string ConstantsNote(const std::string& source,
                          const std::map<std::string, std::string>& set) {
  std::vector<std::string> names;
  for (const auto& [name, value] : set) {
    for (size_t at = 0; (at = source.find(name, at)) != std::string::npos; at += name.size()) {
      if (at != 0 && source[at - 1] != '\n') continue;
      const size_t after = source.find_first_not_of(" \t", at + name.size());
      const bool assigned =
          after != std::string::npos &&
          (source[after] == ':' || (source[after] == '=' && source.substr(after, 2) != "=="));
      if (!assigned) continue;
      names.push_back(name);
      break;
    }
  }
  if (names.empty()) return {};
  return fmt::format("its own {} {} set as in the problem", fmt::join(names, ", "),
                     names.size() == 1 ? "was" : "were");
}

std::optional<Roofline> RooflineOf(const Verdict& verdict, const MachineProfile& machine,
                                   const WorkAccount& account, const std::string& operands,
                                   const Gpu* gpu) {
  const BaselineResult& headline = verdict.speed->baselines.at(verdict.speed->headline);
  const MeasuredTimes times{headline.candidate_time_ns,
                            headline.time_ns,
                            verdict.candidate.form == CandidateForm::kPython,
                            headline.launched.has_value(),
                            headline.copies == "candidate" || headline.copies == "both",
                            headline.copies == "opponent" || headline.copies == "both"};
  if (gpu == nullptr)
    return MakeRoofline(*verdict.work, verdict.problem.dtype == "float64", machine,
                        verdict.machine.threads, times);
  const GpuCeilings* ceilings =
      FindGpuCeilings(machine, gpu->facts().uuid, gpu->facts().driver_version);
  if (ceilings == nullptr) return std::nullopt;
  const GpuDemand demand{operands.empty() ? verdict.problem.dtype : operands,
                         verdict.correctness->required_class, MatrixShare(account)};
  return MakeGpuRoofline(*verdict.work, demand, *ceilings, times);
}

namespace {
// Where a problem forbids libraries, this share of the time in them is none of the candidate's
// own: allocation and dispatch go through PyTorch in the python form.
constexpr double kForeignShareMax = 0.2;

// The foul that gate 2 saw, if any.
std::optional<Foul> FoulOf(const Gate2Result& result, const ProblemRequest& problem) {
  if (result.worked_ahead) return Foul{"super-batch", *result.worked_ahead};
  if (problem.allow_libraries || !result.libraries ||
      result.libraries->foreign_share <= kForeignShareMax)
    return std::nullopt;
  std::vector<std::string> names;
  for (const auto& [name, share] : result.libraries->shares) names.push_back(name);
  return Foul{"foreign-library",
              fmt::format("{:.0f}% of its time went by in {}, and this problem forbids libraries",
                          100 * result.libraries->foreign_share, fmt::join(names, ", "))};
}

}  // namespace

bool ConcludeGate2(Gate2Result result, const ProblemRequest& problem, const std::string& baseline,
                   Verdict* verdict) {
  Correctness& correctness = *verdict->correctness;
  correctness.calls_checked += result.checks.calls;
  correctness.error_ratio = std::max(correctness.error_ratio, result.checks.error_ratio);
  if (result.libraries) verdict->libraries = result.libraries;
  if (result.checks.wrong) {
    correctness.passed = false;
    correctness.hint = result.checks.wrong->hint;
    correctness.mistake = result.checks.wrong->mistake;
    correctness.first_mismatch = result.checks.wrong->mismatch;
    verdict->outcome = result.checks.wrong->lacked_memory ? Outcome::kOutOfMemory : Outcome::kWrong;
    verdict->message = (result.checks.wrong->lacked_memory
                            ? "in a timed call, though not on the draws of gate 1: "
                            : "wrong in a timed call, though right on the draws of gate 1: ") +
                       result.checks.wrong->hint;
    verdict->speed.reset();
    return true;
  }
  if (auto foul = FoulOf(result, problem)) {
    verdict->outcome = Outcome::kFoul;
    verdict->message = foul->seen;
    verdict->foul = std::move(foul);
    verdict->speed.reset();
    return true;
  }
  for (PairSamples& samples : result.samples) {
    samples.baseline = baseline;
    verdict->samples.push_back(std::move(samples));
  }
  if (result.sustained) {
    result.sustained->baseline = baseline;
    verdict->sustained = std::move(result.sustained);
  }
  BaselineResult& concluded = verdict->speed->baselines[baseline];
  concluded = std::move(result.result);
  if (const std::string clocks = ClockNote(verdict->samples, baseline); !clocks.empty())
    concluded.note += (concluded.note.empty() ? "" : "; ") + clocks;
  return false;
}

void AddBest(const std::map<std::string, std::vector<std::string>>& left_out, Speed* speed) {
  const auto hardest = std::min_element(
      speed->baselines.begin(), speed->baselines.end(),
      [](const auto& a, const auto& b) { return a.second.speedup < b.second.speedup; });
  ASSAY_CHECK(hardest != speed->baselines.end());
  std::vector<std::string> names;
  for (const auto& [name, result] : speed->baselines) names.push_back(name);
  std::string note = hardest->first;
  if (names.size() > 1) note += fmt::format(", the hardest to beat of {}", fmt::join(names, ", "));
  for (const auto& [why, failed] : left_out)
    note += fmt::format("; {} {} left out: {}", fmt::join(failed, ", "),
                        failed.size() == 1 ? "is" : "are", why);
  BaselineResult best = hardest->second;
  best.note = best.note.empty() ? note : fmt::format("{}; {}", note, best.note);
  speed->baselines[kBestBaseline] = std::move(best);
}

void AddDraws(Correctness other, const std::map<std::string, std::string>& set,
              Correctness* correctness) {
  correctness->calls_checked += other.calls_checked;
  correctness->error_ratio = std::max(correctness->error_ratio, other.error_ratio);
  for (DrawRecord& draw : other.draws) {
    draw.set = set;
    correctness->draws.push_back(std::move(draw));
  }
  if (correctness->differs_on_special_values.empty())
    correctness->differs_on_special_values = std::move(other.differs_on_special_values);
  if (other.passed) return;
  correctness->passed = false;
  correctness->max_abs_error = std::max(correctness->max_abs_error, other.max_abs_error);
  correctness->first_mismatch = other.first_mismatch;
  correctness->hint = other.hint;
  correctness->mistake = other.mistake;
}

std::string NoteOfSameValues(const ProblemDescription& description) {
  if (!description.same_values) return {};
  return std::string(kSameValues) +
         (description.own_values
              ? ": the judge's own were used, of the same shapes, dtypes, range and signs"
              : ", and none that the judge may change");
}

std::string NoteOfFloat64(const ProblemDescription& description) {
  const auto is_float_output = [](const wire::ArgumentSpec& argument) {
    return argument.role == wire::Role::kOutput && IsFloatingPoint(argument.dtype);
  };
  if (!description.float64_supported && !description.own_check)
    return std::ranges::any_of(description.arguments, is_float_output)
               ? "the reference does not run in float64, which would tell its own error on unusual "
                 "values: of these random signs alone are tried, for gross faults"
               : "";
  if (description.float64_pieces == 0) return {};
  return fmt::format("the reference ran in float64 on {} pieces of the batch, as memory asks for",
                     description.float64_pieces);
}

std::string NoteOfState(const ProblemDescription& description, const ProblemRequest& problem,
                        CandidateForm form) {
  if (!description.changes_state) return {};
  if (problem.ignores_state)
    return "what forward changes in its module was not compared, as was asked";
  if (form == CandidateForm::kPython) return {};
  return "what forward changes in its module is compared in candidates in Python alone";
}

std::string NoteOfDrawsForTime(const std::vector<DrawRecord>& draws) {
  const auto left_out = std::ranges::count(draws, true, &DrawRecord::for_time);
  if (left_out == 0) return {};
  return fmt::format("{} of {} kinds of values are left out, as the reference is slow at this size",
                     left_out, draws.size());
}

std::string NoteOfLeftOut(const std::vector<DrawRecord>& draws) {
  std::set<std::string> kinds;
  for (const DrawRecord& draw : draws)
    if (draw.result == "passed" && !draw.reason.empty()) kinds.insert(draw.kind);
  if (kinds.empty()) return {};
  return fmt::format("elements are left out in which rounding alone decides, of {} draws",
                     fmt::join(kinds, ", "));
}

namespace {

std::string UnsettledMessage(const BaselineResult& result, const std::string& opponent) {
  const WhyUnsettled why = result.why_unsettled.value_or(WhyUnsettled{});
  const auto open = [&](std::string_view reason) {
    return fmt::format("correct, but it is open whether it beats {}: {}", opponent, reason);
  };
  switch (why.cause) {
    case UnsettledCause::kNoise:
    case UnsettledCause::kDisturbed:
      break;
    case UnsettledCause::kBudget:
      return fmt::format(
          "correct, but the budget ended after {} {}, too few to say whether it beats {}: --budget "
          "{:g} has room for a decision",
          result.pairs, result.pairs == 1 ? "pair" : "pairs", opponent, why.budget_s);
    case UnsettledCause::kCharges:
      return open("it is slower only by time that is charged to it");
    case UnsettledCause::kCopies:
      return open("the copies of results weigh more than the difference");
    case UnsettledCause::kBlocks:
      return open("its gain comes from a part of its blocks");
    case UnsettledCause::kMemory:
      return open("memory holds too few calls");
    case UnsettledCause::kAlone:
      return open("calls alone do not show its gain");
    case UnsettledCause::kLibraries:
      return open("where its time goes could not be seen");
    case UnsettledCause::kUnseen:
      return open("operators that the values do not show take as much time as it gains");
  }
  return fmt::format("correct, but too noisy here to say whether it beats {}", opponent);
}

}  // namespace

std::string OutcomeMessage(Outcome outcome, const Speed& speed, const std::string& opponent) {
  const double speedup = speed.baselines.at(speed.headline).speedup;
  const bool at_one = speed.threshold == 1;
  switch (outcome) {
    case Outcome::kFaster:
      return fmt::format("correct, and {:.2f}x the speed of {}", speedup, opponent);
    case Outcome::kSlower:
      return fmt::format("correct, but slower than {}{}: {:.2f}x its speed",
                         at_one ? "" : fmt::format("{:g} times ", speed.threshold), opponent,
                         speedup);
    case Outcome::kTie:
      return fmt::format("correct, and as fast as {}{}: {:.3f}x",
                         at_one ? "" : fmt::format("{:g} times ", speed.threshold), opponent,
                         speedup);
    case Outcome::kNotFaster:
      return fmt::format("correct, and out of reach of being faster than {}{}: {:.2f}x its speed",
                         at_one ? "" : fmt::format("{:g} times ", speed.threshold), opponent,
                         speedup);
    default:
      return UnsettledMessage(
          speed.baselines.at(speed.headline),
          fmt::format("{}{}", at_one ? "" : fmt::format("{:g} times ", speed.threshold), opponent));
  }
}

}  // namespace assay
