#include "web/hall_testing.h"

#include <nlohmann/json.hpp>

namespace assay {

ServedReply HallTestBase::AskAs(const std::string& token, const std::string& method,
                                const std::string& target, const Json& body) {
  return Ask(method, target, {{"authorization", "Bearer " + token}}, body.dump());
}

HallTestBase::Json HallTestBase::JsonOf(const ServedReply& reply) {
  return Json::parse(reply.body, nullptr, false);
}

HallTestBase::Json HallTestBase::Candidate(const std::string& source) {
  return {{"problem", "softmax"}, {"size", "tiny"}, {"name", "mine.cpp"}, {"source", source}};
}

}  // namespace assay
