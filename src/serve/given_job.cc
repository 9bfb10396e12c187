#include "serve/given_job.h"

#include <nlohmann/json.hpp>

#include "serve/words.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

// The source of a lease, with its name.
Result<Json> SourceJson(Hall& hall, const std::string& name, const std::string& hash) {
  ASSAY_ASSIGN_OR_RETURN(const std::string source, hall.archive().Get(hash));
  return Json{{"name", name}, {"source", source}};
}

Result<Json> ProblemJson(Hall& hall, const Job& job) {
  ASSAY_ASSIGN_OR_RETURN(const OfferedProblem* problem, hall.catalogue().Find(job.problem));
  Json json{{"name", job.problem},
            {"file", nullptr},
            {"hash", problem->hash},
            {"size", job.size},
            {"set", job.set}};
  if (!problem->is_own) return json;
  // A size's name stands in the suite, which the runner has not got.
  ASSAY_ASSIGN_OR_RETURN(json["file"], hall.catalogue().Text(*problem));
  json["size"] = "";
  if (const auto size = problem->facts.sizes.find(job.size); size != problem->facts.sizes.end())
    for (const auto& [name, value] : size->second)
      if (!json["set"].contains(name)) json["set"][name] = value;
  return json;
}

Result<std::string> BodyOf(Hall& hall, const LeasedJob& leased) {
  const Job& job = leased.job;
  Json asked{{"id", job.id}, {"kind", JobKindName(job.kind)}};
  ASSAY_ASSIGN_OR_RETURN(asked["problem"], ProblemJson(hall, job));
  ASSAY_ASSIGN_OR_RETURN(asked["candidate"], SourceJson(hall, job.name, job.source_hash));
  asked["opponent"] = nullptr;
  if (!job.opponent_hash.empty()) {
    ASSAY_ASSIGN_OR_RETURN(asked["opponent"],
                           SourceJson(hall, leased.opponent_name, job.opponent_hash));
  }
  asked["terms"] = Json::object();
  if (hall.verdict_seconds() > 0) asked["terms"]["budget_s"] = hall.verdict_seconds();
  asked["seconds_max"] = kSecondsOfJobMax;
  return Json{{"lease", leased.lease}, {"lease_s", kLeaseOfJobS}, {"job", std::move(asked)}}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

Result<std::optional<GivenJob>> GiveJob(Hall& hall, const Account& owner, const KnownRunner& facts,
                                        Instant now,
                                        const std::function<void(int64_t job)>& changed) {
  ASSAY_ASSIGN_OR_RETURN(const bool is_server, hall.accounts().IsServer(owner.id));
  ASSAY_ASSIGN_OR_RETURN(const KnownRunner runner,
                         hall.leases().Meet(owner, facts, is_server, now));
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const auto leased, hall.leases().Take(runner, now));
    if (!leased) return std::nullopt;
    changed(leased->job.id);
    auto body = BodyOf(hall, *leased);
    if (body) return GivenJob{leased->job.id, leased->lease, std::move(*body)};
    ASSAY_ASSIGN_OR_RETURN(const Ending ending,
                           hall.leases().EndWithError(leased->job.id, leased->lease,
                                                      {"usage", body.error().message}, now));
    (void)ending;
  }
}

}  // namespace assay
