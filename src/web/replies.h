// Replies in JSON, and errors.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "http/server.h"
#include "serve/types.h"

namespace assay {

// Text that is no UTF-8 gets U+FFFD.
ServedReply JsonReply(const nlohmann::ordered_json& json, int status = 200);
// {"error": {"kind", "message"}}; the kind follows from the status: "not_found".
ServedReply ErrorReply(int status, const std::string& message);
// kUsage is the request's fault; else the server's, which is told in one line on its own stderr.
ServedReply ErrorReply(const Error& error);
ServedReply Redirect(const std::string& path);

nlohmann::ordered_json JobJson(const Job& job);
nlohmann::ordered_json EntryJson(const BoardEntry& entry);

// A body that is one JSON object. Errors: kUsage.
Result<nlohmann::ordered_json> ReadJsonObject(const std::string& body);
// A text of the object. Errors (kUsage): it is of another kind, or missing and needed.
Result<std::string> TextField(const nlohmann::ordered_json& object, const std::string& name,
                              bool needed);

}  // namespace assay

// Returns the error of a Result as a reply.
#define ASSAY_CONCATENATE_REPLY_(a, b) a##b
#define ASSAY_CONCATENATE_REPLY(a, b) ASSAY_CONCATENATE_REPLY_(a, b)
#define ASSAY_ASSIGN_OR_REPLY_(result, target, expression)   \
  auto result = (expression);                                \
  if (!result) return ::assay::ErrorReply((result).error()); \
  target = std::move(result).value()
#define ASSAY_ASSIGN_OR_REPLY(target, expression) \
  ASSAY_ASSIGN_OR_REPLY_(ASSAY_CONCATENATE_REPLY(assay_reply_, __LINE__), target, expression)
