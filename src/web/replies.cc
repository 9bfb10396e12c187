#include "web/replies.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "serve/words.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

std::string KindOf(int status) {
  switch (status) {
    case 400:
      return "usage";
    case 401:
      return "unknown";
    case 403:
      return "forbidden";
    case 404:
      return "not_found";
    case 405:
      return "method";
    case 409:
      return "conflict";
    case 411:
      return "length";
    case 413:
      return "too_large";
    case 429:
      return "too_many";
    default:
      return status < 500 ? "usage" : "environment";
  }
}

Json SetOrNull(const std::string& text) { return text.empty() ? Json() : Json(text); }

}  // namespace

ServedReply JsonReply(const Json& json, int status) {
  return {status, json.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

ServedReply ErrorReply(int status, const std::string& message) {
  return JsonReply({{"error", {{"kind", KindOf(status)}, {"message", message}}}}, status);
}

ServedReply ErrorReply(const Error& error) {
  if (error.kind == ErrorKind::kUsage) return ErrorReply(400, error.message);
  // Its words are for who runs the server: they name files of it.
  std::fputs(fmt::format("assay: {}\n", error.message).c_str(), stderr);
  return ErrorReply(503, "the server cannot do this now: try again later");
}

ServedReply Redirect(const std::string& path) {
  ServedReply reply{303, "", "text/plain"};
  reply.headers.emplace_back("Location", path);
  return reply;
}

Json JobJson(const Job& job) {
  return {{"id", job.id},
          {"kind", JobKindName(job.kind)},
          {"state", JobStateName(job.state)},
          {"place", job.place},
          {"author", job.author.name},
          {"problem", job.problem},
          {"size", job.size},
          {"set", job.set},
          {"name", job.name},
          {"outcome", SetOrNull(job.outcome)},
          {"verdict", SetOrNull(job.verdict)},
          {"failure", SetOrNull(job.failure)},
          {"made", job.made},
          {"ended", SetOrNull(job.ended)},
          {"runner", SetOrNull(job.runner)},
          {"own_runner", job.own_runner},
          {"attempts", job.attempts}};
}

Json EntryJson(const BoardEntry& entry) {
  return {{"verdict", entry.verdict},
          {"job", entry.job},
          {"problem", entry.problem},
          {"size", entry.size},
          {"device", entry.gpu_or_cpu},
          {"precision", entry.precision},
          {"form", entry.form},
          {"author", entry.author},
          {"role", RoleName(entry.role)},
          {"outcome", entry.outcome},
          {"speedup", entry.speedup},
          {"ci_low", entry.ci_low},
          {"ci_high", entry.ci_high},
          {"time_ns", entry.time_ns},
          {"percent_of_peak", entry.percent_of_peak},
          {"time", entry.time},
          {"source", entry.source_hash},
          {"runner", entry.runner},
          {"foul", entry.foul},
          {"sequence", entry.sequence}};
}

Result<Json> ReadJsonObject(const std::string& body) {
  Json json = Json::parse(body, nullptr, false);
  if (!json.is_object()) return UsageError("the body is no JSON object");
  return json;
}

Result<std::string> TextField(const Json& object, const std::string& name, bool needed) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) {
    if (needed) return UsageError(fmt::format("{} is missing", name));
    return std::string();
  }
  if (!found->is_string()) return UsageError(fmt::format("{} must be text", name));
  return found->get<std::string>();
}

}  // namespace assay
