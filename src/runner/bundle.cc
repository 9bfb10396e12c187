#include "runner/bundle.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/hash.h"
#include "model/verdict_json.h"
#include "report/text.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

std::string TextOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Json ObjectOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_object() ? *found : Json::object();
}

Result<void> CheckHash(const std::string& content, const std::string& hash, const char* what) {
  if (!hash.empty() && Sha256Hex(content) == hash) return {};
  return UsageError(
      fmt::format("the bundle's {} is not the one that the verdict is on: its hash differs", what));
}

// The result against the baseline that decides; null: nothing was timed.
const BaselineResult* DecidingResult(const Verdict& verdict) {
  if (!verdict.speed) return nullptr;
  const auto found = verdict.speed->baselines.find(verdict.speed->headline);
  return found == verdict.speed->baselines.end() ? nullptr : &found->second;
}

std::string Interval(const BaselineResult& result) {
  return fmt::format("{} [{}, {}]", FormatRatio(result.speedup), FormatRatio(result.ci_low),
                     FormatRatio(result.ci_high));
}

// The bundle's terms, and what it leaves out as the verdict tells it.
std::string TermsOf(const Bundle& bundle) {
  Json terms = Json::parse(bundle.terms);
  const Verdict& verdict = bundle.verdict;
  const auto add = [&terms](const char* name, Json value) {
    if (!terms.contains(name)) terms[name] = std::move(value);
  };
  if (verdict.outcome == Outcome::kCorrect) add("correctness_only", true);
  if (verdict.correctness && verdict.correctness->tolerance.starts_with("allclose"))
    add("tolerance", verdict.correctness->tolerance);
  if (verdict.problem.weights) add("weights", WeightsKindName(*verdict.problem.weights));
  if (!verdict.speed) return terms.dump();
  add("p", verdict.speed->threshold);
  if (!verdict.speed->against && !verdict.speed->headline.empty())
    add("baseline", verdict.speed->headline);
  return terms.dump();
}

}  // namespace

Result<Bundle> ParseBundle(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || TextOf(json, "schema") != kBundleSchema)
    return UsageError(fmt::format("this is no bundle of a verdict ({})", kBundleSchema));
  Bundle bundle;
  const Json problem = ObjectOf(json, "problem"), candidate = ObjectOf(json, "candidate");
  bundle.problem = {TextOf(problem, "name"), TextOf(problem, "file")};
  bundle.size = TextOf(problem, "size");
  bundle.candidate = {TextOf(candidate, "name"), TextOf(candidate, "source")};
  if (const Json opponent = ObjectOf(json, "opponent"); !opponent.empty())
    bundle.opponent = NamedSource{TextOf(opponent, "name"), TextOf(opponent, "source")};
  bundle.terms = ObjectOf(json, "terms").dump();
  ASSAY_ASSIGN_OR_RETURN(bundle.verdict, VerdictFromJson(ObjectOf(json, "verdict").dump()));
  const Verdict& verdict = bundle.verdict;
  ASSAY_RETURN_IF_ERROR(CheckHash(bundle.problem.source, verdict.problem.hash, "problem"));
  ASSAY_RETURN_IF_ERROR(CheckHash(bundle.candidate.source, verdict.candidate.hash, "candidate"));
  const auto against = verdict.speed ? verdict.speed->against : std::nullopt;
  if (against && !bundle.opponent)
    return UsageError("the verdict is against another candidate, which the bundle does not have");
  if (against) ASSAY_RETURN_IF_ERROR(CheckHash(bundle.opponent->source, against->hash, "opponent"));
  return bundle;
}

TakenJob JobOfBundle(const Bundle& bundle, const std::vector<std::string>& suites) {
  TakenJob job;
  job.problem = bundle.problem.name;
  job.problem_hash = bundle.verdict.problem.hash;
  const auto installed = InstalledProblem(job.problem, suites);
  const bool is_installed = installed && installed->hash == job.problem_hash;
  if (!is_installed) job.file = bundle.problem.source;
  // A file that no suite describes has no named sizes: the verdict's constants say the same.
  const bool has_size = is_installed && !bundle.size.empty();
  job.size = has_size ? bundle.size : "";
  job.set = has_size ? "{}" : Json(bundle.verdict.problem.set).dump();
  job.candidate = bundle.candidate;
  job.opponent = bundle.opponent;
  job.terms = TermsOf(bundle);
  return job;
}

Result<VerdictUrl> ParseVerdictUrl(const std::string& url) {
  std::string rest = url.substr(0, url.find_first_of("?#"));
  while (rest.ends_with('/')) rest.pop_back();
  if (rest.ends_with("/bundle")) rest.resize(rest.size() - std::string_view("/bundle").size());
  for (const std::string_view mark : {"/api/verdicts/", "/verdicts/"}) {
    const size_t at = rest.rfind(mark);
    if (at == std::string::npos) continue;
    VerdictUrl parts{rest.substr(0, at), rest.substr(at + mark.size())};
    if (parts.id.empty() || parts.id.find_first_not_of("0123456789abcdef") != std::string::npos)
      break;
    return parts;
  }
  return UsageError(
      fmt::format("{}: give the URL of a verdict's page, such as "
                  "https://assay.example.org/verdicts/3f2a9c01d4e7",
                  url));
}

std::string_view AgreementName(Agreement::Kind kind) {
  return kind == Agreement::Kind::kAgrees    ? "agrees"
         : kind == Agreement::Kind::kDiffers ? "differs"
                                             : "undecided";
}

Agreement Compare(const Verdict& there, const Verdict& here) {
  using Kind = Agreement::Kind;
  if (there.outcome == Outcome::kUnsettled || here.outcome == Outcome::kUnsettled)
    return {Kind::kUndecided, fmt::format("undecided: {} there, {} here",
                                          OutcomeName(there.outcome), OutcomeName(here.outcome))};
  if (there.outcome != here.outcome)
    return {Kind::kDiffers, fmt::format("differs: {} there, {} here", OutcomeName(there.outcome),
                                        OutcomeName(here.outcome))};
  const BaselineResult* theirs = DecidingResult(there);
  const BaselineResult* ours = DecidingResult(here);
  if (theirs == nullptr || ours == nullptr)
    return {Kind::kAgrees, fmt::format("agrees: {} there and here", OutcomeName(here.outcome))};
  const bool overlap = theirs->ci_low <= ours->ci_high && ours->ci_low <= theirs->ci_high;
  return {overlap ? Kind::kAgrees : Kind::kDiffers,
          fmt::format("{}: {} there and here; {} there, {} here: the intervals {}",
                      overlap ? "agrees" : "differs", OutcomeName(here.outcome), Interval(*theirs),
                      Interval(*ours), overlap ? "overlap" : "do not overlap")};
}

}  // namespace assay
