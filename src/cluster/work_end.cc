#include "cluster/work_end.h"

#include <nlohmann/json.hpp>

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char *kUnjudgedName = "unjudged", *kNoWord = "a worker gave no verdict on it";

std::string TextIn(const Json& object, const char* name, const char* otherwise) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

}  // namespace

std::string ErrorText(const Error& error) {
  const std::string_view kind =
      error.kind == ErrorKind::kUnjudged ? kUnjudgedName : ErrorKindName(error.kind);
  return Json{{"kind", kind}, {"message", error.message}}.dump(-1, ' ', false,
                                                               Json::error_handler_t::replace);
}

Error ErrorOfEnd(const EndedWork& ended) {
  if (ended.state == WorkState::kCancelled)
    return {ErrorKind::kEnvironment, "it was taken out of the queue"};
  const Json json = Json::parse(ended.end.error, nullptr, false);
  if (!json.is_object()) return {ErrorKind::kEnvironment, kNoWord};
  const std::string kind = TextIn(json, "kind", "");
  return {kind == "usage"         ? ErrorKind::kUsage
          : kind == kUnjudgedName ? ErrorKind::kUnjudged
                                  : ErrorKind::kEnvironment,
          TextIn(json, "message", kNoWord)};
}

}  // namespace assay
