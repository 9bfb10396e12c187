#include "worklog/fact.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/hash.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSchema = "assay.fact/1";

}  // namespace

std::string FactLine(const Fact& fact) {
  const Record& record = fact.record;
  const Json json = {{"schema", kSchema},
                     {"sequence", record.sequence},
                     {"kind", RecordKindName(record.facts.kind)},
                     {"time", record.time},
                     {"name", record.facts.name},
                     {"id", record.facts.id},
                     {"problem", record.facts.problem},
                     {"outcome", record.facts.outcome},
                     {"source", record.source},
                     {"terms", record.terms},
                     {"parent", record.parent},
                     {"hash", record.hash},
                     {"content", fact.content}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Fact> ParseFactLine(std::string_view line) {
  Json json = Json::parse(line, nullptr, false);
  if (!json.is_object() || json.value("schema", Json()) != kSchema)
    return UsageError("not a fact of a worklog");
  Fact fact;
  const auto text = [&](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const auto sequence = json.find("sequence");
  const auto kind = RecordKindFromName(text("kind"));
  if (!kind || sequence == json.end() || !sequence->is_number_integer())
    return UsageError("not a fact of a worklog");
  Record& record = fact.record;
  record.sequence = sequence->get<int64_t>();
  record.facts = {*kind, text("name"), text("id"), text("problem"), text("outcome")};
  record.time = text("time");
  record.source = text("source");
  record.terms = text("terms");
  record.parent = text("parent");
  record.hash = text("hash");
  fact.content = text("content");
  record.content = Sha256Hex(fact.content);
  if (RecordHash(record) != record.hash)
    return UsageError("the fact was changed: its hash is not that of its content");
  return fact;
}

size_t ConflictLine(std::string_view text) {
  size_t number = 1;
  for (size_t at = 0; at < text.size(); ++number) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("<<<<<<< ") || rest.starts_with(">>>>>>> ") ||
        rest.starts_with("=======\n"))
      return number;
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) break;
    at += end + 1;
  }
  return 0;
}

Result<std::vector<Fact>> ParseFacts(std::string_view text, const std::string& path) {
  if (const size_t line = ConflictLine(text); line > 0)
    return UsageError(
        fmt::format("{} line {}: a merge left a conflict. Facts are only added, so keep the lines "
                    "of both sides, ordered by their sequence, and remove the marks",
                    path, line));
  std::vector<Fact> facts;
  size_t number = 1;
  for (size_t at = 0; at < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (line.empty()) continue;
    auto fact = ParseFactLine(line);
    if (!fact)
      return UsageError(
          fmt::format("{} line {}: {}. Facts come from the archive: bring the file back from git, "
                      "or delete it, and assay worklog check fetches it from the archive",
                      path, number, fact.error().message));
    facts.push_back(std::move(*fact));
  }
  return facts;
}

}  // namespace assay
