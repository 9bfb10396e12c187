#include "worker/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace assay {
namespace {

using Json = nlohmann::ordered_json;
using Kind = WorkerRequest::Kind;

constexpr size_t kSourceBytesMax = size_t{4} << 20;
constexpr std::array<std::pair<std::string_view, Kind>, 5> kKinds{{{"judge", Kind::kJudge},
                                                                   {"check", Kind::kCheck},
                                                                   {"describe", Kind::kDescribe},
                                                                   {"cancel", Kind::kCancel},
                                                                   {"shutdown", Kind::kShutdown}}};

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Reads the fields of an object, and refuses those that nobody asked for.
class Fields {
 public:
  Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

  template <typename T>
  void Read(const char* name, T* value) {
    known_.push_back(name);
    const auto found = object_.find(name);
    if (found == object_.end() || found->is_null()) return;
    try {
      *value = found->get<T>();
    } catch (const Json::exception&) {
      wrong_ = fmt::format("{}{} has a value of the wrong kind", where_, name);
    }
  }
  // Numbers of a `set` may be numbers: they mean what they would mean in Python.
  void ReadSettings(const char* name, std::map<std::string, std::string>* settings) {
    known_.push_back(name);
    const auto found = object_.find(name);
    if (found == object_.end() || found->is_null()) return;
    if (!found->is_object()) {
      wrong_ = fmt::format("{}{} must be an object: {{\"ROWS\": 64}}", where_, name);
      return;
    }
    for (const auto& [key, value] : found->items()) {
      const std::string text = value.is_string() ? value.get<std::string>() : Dump(value);
      const auto setting = ParseSetting(key + "=" + text);
      if (setting)
        settings->insert(*setting);
      else
        wrong_ = setting.error().message;
    }
  }
  void Know(const char* name) { known_.push_back(name); }
  Result<void> Finish() const {
    if (!wrong_.empty()) return UsageError(wrong_);
    for (const auto& [key, value] : object_.items())
      if (std::find(known_.begin(), known_.end(), key) == known_.end())
        return UsageError(fmt::format("{}{} is no field of a request", where_, key));
    return {};
  }

 private:
  const Json& object_;
  std::string where_, wrong_;
  std::vector<std::string> known_;
};

Result<AskedTerms> TermsFrom(const Json& object) {
  AskedTerms terms;
  if (!object.is_object()) return UsageError("terms must be an object with a problem");
  Fields fields(object, "terms.");
  fields.Read("problem", &terms.problem.problem);
  fields.Read("size", &terms.problem.size);
  fields.ReadSettings("set", &terms.problem.set);
  fields.Read("gradients", &terms.problem.gradients);
  fields.Read("device", &terms.device);
  fields.Read("baseline", &terms.baselines);
  fields.Read("against", &terms.against);
  fields.Read("p", &terms.threshold);
  fields.Read("bound", &terms.bound);
  fields.Read("threads", &terms.threads);
  fields.Read("python", &terms.python);
  fields.Read("precision", &terms.precision);
  fields.Read("tolerance", &terms.tolerance);
  fields.Read("weights", &terms.weights);
  fields.Read("special_values", &terms.special_values);
  fields.Read("state", &terms.state);
  fields.Read("skip_draws", &terms.skip_draws);
  fields.Read("one_size", &terms.one_size);
  fields.Read("no_replay", &terms.no_replay);
  fields.Read("probe", &terms.probe);
  fields.Read("profile", &terms.profile);
  fields.Read("timeout_s", &terms.limits.timeout_s);
  fields.Read("build_timeout_s", &terms.limits.build_timeout_s);
  fields.Read("futility", &terms.effort.futility);
  fields.Read("budget_s", &terms.effort.speed_budget_s);
  fields.Read("sustained_s", &terms.effort.sustained_s);
  fields.Read("memory", &terms.limits.memory);
  ASSAY_RETURN_IF_ERROR(fields.Finish());
  if (terms.problem.problem.empty())
    return UsageError("terms.problem is missing: a .py file, or the name of a problem");
  return terms;
}

Json JsonOf(const AskedTerms& terms) {
  return {{"problem", terms.problem.problem},
          {"size", terms.problem.size},
          {"set", terms.problem.set},
          {"gradients", terms.problem.gradients},
          {"device", terms.device},
          {"baseline", terms.baselines},
          {"against", terms.against},
          {"p", terms.threshold},
          {"bound", terms.bound},
          {"threads", terms.threads},
          {"python", terms.python},
          {"precision", terms.precision},
          {"tolerance", terms.tolerance},
          {"weights", terms.weights},
          {"special_values", terms.special_values},
          {"state", terms.state},
          {"skip_draws", terms.skip_draws},
          {"one_size", terms.one_size},
          {"no_replay", terms.no_replay},
          {"probe", terms.probe},
          {"profile", terms.profile},
          {"timeout_s", terms.limits.timeout_s},
          {"build_timeout_s", terms.limits.build_timeout_s},
          {"futility", terms.effort.futility},
          {"budget_s", terms.effort.speed_budget_s},
          {"sustained_s", terms.effort.sustained_s},
          {"memory", terms.limits.memory}};
}

// {"path": "mine.cpp"}, or {"name": "mine.cpp", "source": "...", "note": "..."}.
Result<CandidateSource> CandidateFrom(const Json& object) {
  if (!object.is_object())
    return UsageError("a candidate is an object with a path, or with a name and a source");
  std::string path, name, source, note;
  Fields fields(object, "candidate.");
  fields.Read("path", &path);
  fields.Read("name", &name);
  fields.Read("source", &source);
  fields.Read("note", &note);
  ASSAY_RETURN_IF_ERROR(fields.Finish());
  if (!path.empty()) return ReadCandidate(path);
  if (name.empty() || source.empty())
    return UsageError(
        "a candidate needs a path, or a name (whose ending says its form) and a "
        "source");
  if (source.size() > kSourceBytesMax) return UsageError("a candidate's source is over 4 MiB");
  ASSAY_ASSIGN_OR_RETURN(CandidateSource candidate, CandidateFromAnswer(name, std::move(source)));
  if (!note.empty()) candidate.note = std::move(note);
  return candidate;
}

}  // namespace

Result<WorkerRequest> ParseWorkerRequest(const std::string& line, std::string* id) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return UsageError("a request is one line with one JSON object");
  WorkerRequest request;
  std::string kind;
  Fields fields(json, "");
  fields.Read("id", &request.id);
  *id = request.id;
  fields.Read("request", &kind);
  fields.Read("of", &request.cancels);
  fields.Know("terms");
  fields.Know("candidates");
  std::optional<std::vector<std::string>> known;
  if (json.contains("known")) fields.Read("known", &known.emplace());
  ASSAY_RETURN_IF_ERROR(fields.Finish());
  const auto found = std::find_if(kKinds.begin(), kKinds.end(),
                                  [&](const auto& each) { return each.first == kind; });
  if (found == kKinds.end())
    return UsageError(
        fmt::format("request is '{}': use judge, check, describe, cancel or shutdown", kind));
  request.kind = found->second;
  if (request.kind == Kind::kShutdown || request.kind == Kind::kCancel) return request;
  if (request.id.empty()) return UsageError("id is missing: any text of the client's");
  const Json none = Json::object();
  const Json& terms = json.contains("terms") ? json["terms"] : none;
  ASSAY_ASSIGN_OR_RETURN(request.terms, TermsFrom(terms));
  if (request.kind == Kind::kDescribe) return request;
  if (known) request.known.emplace(known->begin(), known->end());
  if (!json.contains("candidates") || !json["candidates"].is_array() || json["candidates"].empty())
    return UsageError("candidates is missing: a list of objects");
  for (const Json& candidate : json["candidates"]) {
    ASSAY_ASSIGN_OR_RETURN(CandidateSource source, CandidateFrom(candidate));
    ASSAY_ASSIGN_OR_RETURN(source, AsAsked(std::move(source), request.terms));
    request.candidates.push_back(std::move(source));
  }
  return request;
}

std::string JudgeLine(const std::string& id, const AskedTerms& terms,
                      const std::vector<const CandidateSource*>& candidates,
                      const std::optional<std::set<std::string>>& known) {
  Json line = {{"id", id},
               {"request", terms.effort.correctness_only ? "check" : "judge"},
               {"terms", JsonOf(terms)},
               {"candidates", Json::array()}};
  for (const CandidateSource* candidate : candidates) {
    Json json = {{"name", candidate->path}, {"source", candidate->content}};
    if (!candidate->note.empty()) json["note"] = candidate->note;
    line["candidates"].push_back(std::move(json));
  }
  if (known) line["known"] = *known;
  return Dump(line);
}

std::string DescribeLine(const std::string& id, const AskedTerms& terms) {
  return Dump({{"id", id}, {"request", "describe"}, {"terms", JsonOf(terms)}});
}

std::string TermsText(const AskedTerms& terms) {
  const Json defaults = JsonOf(AskedTerms()), all = JsonOf(terms);
  Json json = Json::object();
  for (const auto& [name, value] : all.items())
    if (value != defaults[name]) json[name] = value;
  if (terms.effort.correctness_only) json["correctness_only"] = true;
  return Dump(json);
}

}  // namespace assay
