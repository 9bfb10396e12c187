#include "search/known_verdicts.h"

#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "base/hash.h"
#include "model/verdict_json.h"

namespace assay {
namespace {

// So many of the newest verdicts on a problem are looked at.
constexpr int64_t kLookedAtMax = 2000;

// A crash or a time-out may be the machine's, and an open verdict may be decided by a second look.
bool IsOfTheCandidateAlone(Outcome outcome) {
  switch (outcome) {
    case Outcome::kFaster:
    case Outcome::kSlower:
    case Outcome::kTie:
    case Outcome::kNotFaster:
    case Outcome::kWrong:
    case Outcome::kFoul:
      return true;
    default:
      return false;
  }
}

bool IsSame(const Machine& a, const Machine& b) {
  const auto facts = [](const Machine& machine) {
    return std::tie(machine.cpu, machine.cores, machine.threads, machine.gpu, machine.kernel,
                    machine.isolation);
  };
  return facts(a) == facts(b);
}

double ThresholdOf(const std::string& terms) {
  const auto json = nlohmann::json::parse(terms, nullptr, false);
  return json.is_object() ? json.value("p", 1.0) : 1.0;
}

}  // namespace

bool StandsFor(const Verdict& earlier, const Verdict& own, double p) {
  return IsOfTheCandidateAlone(earlier.outcome) && !earlier.candidate.artifact.empty() &&
         earlier.problem.hash == own.problem.hash && earlier.problem.set == own.problem.set &&
         earlier.problem.weights == own.problem.weights && IsSame(earlier.machine, own.machine) &&
         earlier.toolchain == own.toolchain && (!earlier.speed || earlier.speed->threshold == p);
}

Result<std::vector<std::string>> KnownVerdicts::Learn(const Verdict& own) {
  std::vector<std::string> artifacts;
  if (std::exchange(learned_, true)) return artifacts;
  RecordQuery query;
  query.kind = RecordKind::kVerdict;
  query.problem = problem_;
  query.limit = kLookedAtMax;
  ASSAY_ASSIGN_OR_RETURN(const std::vector<Record> newest, archive_.Find(query));
  const std::string terms = Sha256Hex(terms_);
  const double p = ThresholdOf(terms_);
  for (const Record& record : newest) {
    if (record.terms != terms) continue;
    // One that was changed, or of another form, stands for nothing.
    const auto content = archive_.Get(record.content);
    if (!content) continue;
    const auto verdict = VerdictFromJson(*content);
    if (!verdict || !StandsFor(*verdict, own, p)) continue;
    const std::string& artifact = verdict->candidate.artifact;
    if (contents_.try_emplace(artifact, record.content).second) artifacts.push_back(artifact);
  }
  return artifacts;
}

Result<KnownVerdicts::Known> KnownVerdicts::Find(const std::string& artifact) const {
  const auto found = contents_.find(artifact);
  if (found == contents_.end())
    return EnvironmentError("the worker knows a build that nobody named");
  ASSAY_ASSIGN_OR_RETURN(const std::string content, archive_.Get(found->second));
  Known known;
  ASSAY_ASSIGN_OR_RETURN(known.verdict, VerdictFromJson(content));
  known.content = found->second;
  return known;
}

}  // namespace assay
