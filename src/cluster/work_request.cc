#include "cluster/work_request.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/hash.h"
#include "base/version.h"
#include "problem/suite.h"
#include "worker/protocol.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kProblemBytesMax = size_t{1} << 20;

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string TextOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// The terms without those that name files and programs of this machine.
std::string PlainTerms(const AskedTerms& asked, const ProblemRequest& problem, bool sends_file) {
  AskedTerms plain = asked;
  plain.problem = {};
  plain.python.clear();
  plain.against.clear();
  if (sends_file) {
    // A file alone does not say what its suite says of it.
    if (plain.precision.empty()) plain.precision = problem.precision;
    if (plain.tolerance.empty()) plain.tolerance = problem.tolerance;
    if (plain.special_values.empty()) plain.special_values = problem.special_values;
    if (plain.weights.empty() && problem.weights != WeightsKind::kVaried)
      plain.weights = WeightsKindName(problem.weights);
    for (const std::string& kind : problem.skip_draws)
      plain.skip_draws += (plain.skip_draws.empty() ? "" : ",") + kind;
  }
  return TermsText(plain);
}

std::string BaseName(const std::string& path) { return fs::path(path).filename().string(); }

}  // namespace

Result<WorkRequest> MakeWorkRequest(const AskedTerms& terms, const CandidateSource& candidate,
                                    const std::vector<std::string>& suites) {
  ASSAY_ASSIGN_OR_RETURN(const ProblemRequest problem, ResolveProblem(terms.problem, suites));
  WorkRequest request;
  request.version = std::string(kAssayVersion);
  request.python = terms.python;
  TakenJob& job = request.job;
  job.problem = problem.name;
  job.problem_hash = Sha256Hex(problem.source);
  const auto installed = InstalledProblem(problem.name, suites);
  const bool is_installed = installed && installed->hash == job.problem_hash;
  if (is_installed) {
    job.size = terms.problem.size;
    job.set = Json(terms.problem.set).dump();
  } else {
    job.file = problem.source;
    job.set = Json(problem.set).dump();
    std::error_code code;
    request.path = fs::absolute(problem.path, code).string();
    request.path_size = terms.problem.size;
    request.path_set = Json(terms.problem.set).dump();
  }
  job.terms = PlainTerms(terms, problem, !is_installed);
  job.candidate = {BaseName(candidate.path), candidate.content};
  if (!terms.against.empty()) {
    ASSAY_ASSIGN_OR_RETURN(const std::string content, ReadFile(terms.against, kCandidateBytesMax));
    job.opponent = NamedSource{BaseName(terms.against), content};
  }
  return request;
}

std::string WorkRequestText(const WorkRequest& request) {
  const TakenJob& job = request.job;
  Json problem = {{"name", job.problem},
                  {"hash", job.problem_hash},
                  {"size", job.size},
                  {"set", Json::parse(job.set)}};
  if (job.file) problem["file"] = *job.file;
  Json json = {{"assay", request.version},
               {"problem", std::move(problem)},
               {"candidate", {{"name", job.candidate.name}, {"source", job.candidate.source}}},
               {"terms", Json::parse(job.terms)}};
  if (job.opponent)
    json["opponent"] = {{"name", job.opponent->name}, {"source", job.opponent->source}};
  if (!request.python.empty()) json["python"] = request.python;
  if (request.fresh) json["fresh"] = true;
  if (request.seconds_max > 0) json["seconds_max"] = request.seconds_max;
  if (request.known) json["known"] = *request.known;
  if (!request.path.empty())
    json["at"] = {{"path", request.path},
                  {"size", request.path_size},
                  {"set", Json::parse(request.path_set)}};
  return Dump(json);
}

Result<WorkRequest> ParseWorkRequest(const std::string& text) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return UsageError("the work is no JSON object");
  WorkRequest request;
  request.version = TextOf(json, "assay");
  request.python = TextOf(json, "python");
  request.fresh = json.value("fresh", Json(false)) == Json(true);
  if (const auto most = json.find("seconds_max"); most != json.end() && most->is_number())
    request.seconds_max = most->get<double>();
  if (const auto known = json.find("known"); known != json.end() && known->is_array()) {
    request.known.emplace();
    for (const Json& artifact : *known)
      if (artifact.is_string()) request.known->insert(artifact.get<std::string>());
  }
  if (const auto at = json.find("at"); at != json.end() && at->is_object()) {
    request.path = TextOf(*at, "path");
    request.path_size = TextOf(*at, "size");
    request.path_set = Dump(at->value("set", Json::object()));
  }
  json["id"] = kJobRequestId;
  if (!ParseTakenJob(Dump({{"lease", "queue"}, {"job", json}}), &request.job))
    return UsageError("the work names no problem and no candidate");
  if (request.job.problem.empty() || request.job.candidate.name.empty())
    return UsageError("the work names no problem or no candidate");
  return request;
}

Result<std::string> LineOfRequest(const WorkRequest& request, const std::string& device,
                                  const std::vector<std::string>& suites, JobFiles& files) {
  ASSAY_ASSIGN_OR_RETURN(const std::string text, WorkerLine(request.job, device, suites, files));
  Json line = Json::parse(text);
  if (!request.python.empty()) line["terms"]["python"] = request.python;
  if (request.known) line["known"] = *request.known;
  if (!request.path.empty()) {
    const auto there = ReadFile(request.path, kProblemBytesMax);
    if (there && Sha256Hex(*there) == request.job.problem_hash) {
      line["terms"]["problem"] = request.path;
      line["terms"]["size"] = request.path_size;
      line["terms"]["set"] = Json::parse(request.path_set);
    }
  }
  return Dump(line);
}

}  // namespace assay
