#include "search/episode_record.h"

#include <nlohmann/json.hpp>

namespace assay {

NewRecord RecordOfEpisode(const EpisodeEvent& event, const std::string& facts) {
  using Json = nlohmann::ordered_json;
  Json content = {{"schema", "assay.env.episode/1"},
                  {"environment", event.environment},
                  {"episode", event.episode},
                  {"what", event.what}};
  const Json more = Json::parse(facts, nullptr, false);
  if (more.is_object()) content.update(more);
  for (const char* left_out : {"message", "messages"}) content.erase(left_out);
  NewRecord record;
  record.facts = {RecordKind::kEpisode, event.episode, event.environment, event.problem,
                  content.value("outcome", "")};
  record.content = content.dump(-1, ' ', false, Json::error_handler_t::replace);
  record.terms = event.terms;
  return record;
}

}  // namespace assay
