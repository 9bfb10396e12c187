#include "cluster/work_end.h"

#include <nlohmann/json.hpp>

#include "runner/job.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kNoWord = "a worker gave no verdict on it";

std::string TextIn(const Json& object, const char* name, const char* otherwise) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

}  // namespace

std::string ErrorText(const Error& error) {
  const Json json = {{"kind", JobErrorKind(error.kind)}, {"message", error.message}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Error ErrorOfEnd(const EndedWork& ended) {
  if (ended.state == WorkState::kCancelled)
    return {ErrorKind::kEnvironment, "it was taken out of the queue"};
  const Json json = Json::parse(ended.end.error, nullptr, false);
  if (!json.is_object()) return {ErrorKind::kEnvironment, kNoWord};
  const std::string kind = TextIn(json, "kind", "");
  ErrorKind found = ErrorKind::kEnvironment;
  for (const ErrorKind each : {ErrorKind::kUsage, ErrorKind::kUnjudged})
    if (kind == JobErrorKind(each)) found = each;
  return {found, TextIn(json, "message", kNoWord)};
}

Error ErrorForAnotherNode(const EndedWork& ended) {
  Error error = ErrorOfEnd(ended);
  if (error.kind == ErrorKind::kUnjudged) error.kind = ErrorKind::kEnvironment;
  return error;
}

}  // namespace assay
