#include "search/search_testing.h"

#include <nlohmann/json.hpp>
#include <set>

#include "base/hash.h"
#include "worker_client/event.h"

namespace assay {

void ScriptedFleet::Send(size_t worker, const std::string& line) {
  const nlohmann::json request = nlohmann::json::parse(line);
  requests.push_back(line);
  if (const auto said = trouble(line)) {
    for (const std::string& each : *said) Say(worker, each);
    return;
  }
  const std::string id = request["id"];
  std::set<std::string> known = request.value("known", std::set<std::string>());
  for (size_t i = 0; i < request["candidates"].size(); ++i) {
    const std::string source = request["candidates"][i]["source"];
    const bool whole = !request["terms"].value("one_size", false);
    const std::string built = artifact(source);
    if (request.contains("known") && !built.empty() && !known.insert(built).second) {
      Say(worker, KnownLine(id, i, built));
      continue;
    }
    Verdict verdict =
        VerdictWith(score_(source), Sha256Hex(source + (whole ? "2" : "1")).substr(0, 12));
    verdict.candidate.artifact = built;
    Say(worker, VerdictLine(id, i, verdict));
  }
  Say(worker, DoneLine(id));
}

}  // namespace assay
