#include "runner/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "model/shared_terms.h"
#include "problem/suite.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kFilesMax = 256;
constexpr size_t kProblemBytesMax = size_t{1} << 20;
constexpr size_t kNameBytesMax = 100;
constexpr size_t kHashDigits = 16;

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// An object's member as text: a number as it is written. Empty: none, or null.
std::string TextOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : Dump(*found);
}

double NumberOf(const Json& object, const char* name, double otherwise) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : otherwise;
}

Json ObjectOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_object() ? *found : Json::object();
}

NamedSource SourceOf(const Json& object) {
  return {TextOf(object, "name"), TextOf(object, "source")};
}

// A name without a folder, which no shell or program reads as an option or a hidden file.
bool IsPlainName(std::string_view name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= kNameBytesMax && name[0] != '.' && name[0] != '-' &&
         std::ranges::all_of(name, is_plain);
}

// The problem's file on this machine.
Result<std::string> ProblemPath(const TakenJob& job, const std::vector<std::string>& suites,
                                JobFiles& files) {
  if (!IsPlainName(job.problem))
    return UsageError("the job's problem has a name that is none: letters, digits, _, - and .");
  if (job.file) {
    if (!job.problem_hash.empty() && Sha256Hex(*job.file) != job.problem_hash)
      return UsageError("the problem's file does not have the hash that the server gives for it");
    const bool has_suffix = job.problem.ends_with(".py");
    return files.Path({has_suffix ? job.problem : job.problem + ".py", *job.file});
  }
  const auto installed = InstalledProblem(job.problem, suites);
  if (installed && (job.problem_hash.empty() || installed->hash == job.problem_hash))
    return installed->path;
  return EnvironmentError(
      fmt::format("this runner has {} {}: install the server's version of Assay "
                  "here",
                  installed ? "another version of the problem" : "no problem", job.problem));
}

}  // namespace

Result<void> ParseTakenJob(const std::string& body, TakenJob* job) {
  const Json json = Json::parse(body, nullptr, false);
  if (!json.is_object()) return EnvironmentError("the server's job is no JSON object");
  job->lease = TextOf(json, "lease");
  job->lease_s = std::max(1.0, NumberOf(json, "lease_s", job->lease_s));
  const Json given = ObjectOf(json, "job");
  job->id = TextOf(given, "id");
  job->seconds_max = std::max(1.0, NumberOf(given, "seconds_max", job->seconds_max));
  if (job->id.empty() || !IsPlainName(job->id) || job->lease.empty())
    return EnvironmentError("the server's job has no id or no lease");
  const Json problem = ObjectOf(given, "problem");
  job->problem = TextOf(problem, "name");
  if (const std::string file = TextOf(problem, "file"); !file.empty()) job->file = file;
  job->problem_hash = TextOf(problem, "hash");
  job->size = TextOf(problem, "size");
  job->set = Dump(ObjectOf(problem, "set"));
  job->candidate = SourceOf(ObjectOf(given, "candidate"));
  if (const Json opponent = ObjectOf(given, "opponent"); !opponent.empty())
    job->opponent = SourceOf(opponent);
  job->terms = Dump(ObjectOf(given, "terms"));
  return {};
}

Result<std::string> AllowedTerms(const std::string& text, bool* is_check) {
  const Json terms = Json::parse(text, nullptr, false);
  if (!terms.is_object()) return UsageError("the terms are no JSON object");
  Json allowed = Json::object();
  *is_check = false;
  for (const auto& [name, value] : terms.items()) {
    if (name == "correctness_only") {
      *is_check = value.is_boolean() && value.get<bool>();
    } else if (name == "problem" || name == "size" || name == "set" || name == "device") {
      continue;  // told apart
    } else if (IsSharedTerm(name)) {
      allowed[name] = value;
    } else {
      return UsageError(fmt::format("the terms have {}, which is not for others to set", name));
    }
  }
  return Dump(allowed);
}

// The suites alone: a name must not lead to a file of the folder in which the runner was started.
std::optional<InstalledFile> InstalledProblem(const std::string& name,
                                              const std::vector<std::string>& suites) {
  for (const std::string& folder : suites) {
    const auto suite = LoadSuite(folder);
    if (!suite) continue;
    for (const SuiteProblem& problem : suite->problems) {
      if (problem.name != name) continue;
      const std::string path = (fs::path(folder) / problem.file).string();
      if (const auto content = ReadFile(path, kProblemBytesMax); content)
        return InstalledFile{path, Sha256Hex(*content)};
    }
  }
  return std::nullopt;
}

Result<JobFiles> JobFiles::Create() {
  ASSAY_ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::Create());
  return JobFiles(std::move(folder));
}

Result<std::string> JobFiles::Path(const NamedSource& file) {
  if (!IsPlainName(file.name))
    return UsageError(fmt::format(
        "a file of the job has a name that is none: at most {} letters, digits, _, - and .",
        kNameBytesMax));
  const std::string folder =
      (folder_.path() / Sha256Hex(file.source).substr(0, kHashDigits)).string();
  const std::string path = (fs::path(folder) / file.name).string();
  std::error_code code;
  if (fs::exists(path, code)) return path;
  ASSAY_RETURN_IF_ERROR(WriteFileAtomically(path, file.source, Durability::kFleeting));
  if (std::ranges::find(folders_, folder) == folders_.end()) folders_.push_back(folder);
  if (folders_.size() > kFilesMax) {
    fs::remove_all(folders_.front(), code);
    folders_.erase(folders_.begin());
  }
  return path;
}

Result<std::string> WorkerLine(const TakenJob& job, const std::string& device,
                               const std::vector<std::string>& suites, JobFiles& files) {
  bool is_check = false;
  ASSAY_ASSIGN_OR_RETURN(const std::string allowed, AllowedTerms(job.terms, &is_check));
  Json terms = Json::parse(allowed);
  ASSAY_ASSIGN_OR_RETURN(terms["problem"], ProblemPath(job, suites, files));
  terms["size"] = job.size;
  terms["set"] = Json::parse(job.set);
  terms["device"] = device;
  if (job.opponent) {
    ASSAY_ASSIGN_OR_RETURN(terms["against"], files.Path(*job.opponent));
  }
  if (!IsPlainName(job.candidate.name))
    return UsageError("the candidate has a name that is none: letters, digits, _, - and .");
  Json line = {{"id", kJobRequestId}, {"request", is_check ? "check" : "judge"}, {"terms", terms}};
  line["candidates"] = Json::array();
  line["candidates"].push_back({{"name", job.candidate.name}, {"source", job.candidate.source}});
  return Dump(line);
}

std::string TakeBody(const RunnerFacts& facts, int wait_s) {
  Json machine = nullptr;
  if (!facts.machine.empty()) machine = Json::parse(facts.machine, nullptr, false);
  return Dump({{"runner", facts.name},
               {"device", facts.device},
               {"version", facts.version},
               {"machine", machine.is_discarded() ? Json() : machine},
               {"wait_s", wait_s}});
}

std::string ProgressBody(const std::string& lease, const std::string& event) {
  Json body = {{"lease", lease}};
  if (!event.empty()) {
    Json json = Json::parse(event, nullptr, false);
    if (!json.is_discarded()) body["event"] = std::move(json);
  }
  return Dump(body);
}

std::string VerdictBody(const std::string& lease, const std::string& verdict) {
  return Dump({{"lease", lease}, {"verdict", Json::parse(verdict)}});
}

std::string_view JobErrorKind(ErrorKind kind) {
  return kind == ErrorKind::kUnjudged ? "unjudged" : ErrorKindName(kind);
}

std::string ErrorBody(const std::string& lease, const Error& error) {
  const Json told = {{"kind", JobErrorKind(error.kind)}, {"message", error.message}};
  return Dump({{"lease", lease}, {"error", told}});
}

bool FlagOf(const std::string& body, const char* name, bool otherwise) {
  const Json json = Json::parse(body, nullptr, false);
  if (!json.is_object()) return otherwise;
  const auto found = json.find(name);
  return found != json.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

}  // namespace assay
