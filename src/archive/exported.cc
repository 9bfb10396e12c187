#include "archive/exported.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/hash.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

bool IsText(RecordKind kind) {
  return kind == RecordKind::kReference || kind == RecordKind::kCandidate ||
         kind == RecordKind::kNote;
}

// A document as the program that recorded it wrote it.
std::string Bytes(const Json& document) {
  return document.is_string() ? document.get<std::string>()
                              : document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string TextOf(const Json& json, std::string_view name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

struct Line {
  ExportedRecord exported;
  Record record;     // as it stood in its archive
  std::string text;  // of a source that no candidate's record has
};

std::optional<Line> ReadLine(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || TextOf(json, "schema") != "assay.archive/1") return std::nullopt;
  const auto kind = RecordKindFromName(TextOf(json, "kind"));
  const auto sequence = json.find("sequence");
  if (!kind || sequence == json.end() || !sequence->is_number_integer()) return std::nullopt;
  Line line;
  line.text = TextOf(json, "text");
  NewRecord& made = line.exported.record;
  made.facts = {*kind, TextOf(json, "name"), TextOf(json, "id"), TextOf(json, "problem"),
                TextOf(json, "outcome")};
  made.once = *kind == RecordKind::kReference || *kind == RecordKind::kCandidate;
  const std::string_view place = *kind == RecordKind::kFailure ? "error" : RecordKindName(*kind);
  if (IsText(*kind))
    made.content = line.text;
  else if (const auto found = json.find(place); found != json.end())
    made.content = Bytes(*found);
  if (const auto terms = json.find("terms"); terms != json.end()) made.terms = Bytes(*terms);
  line.exported.time = TextOf(json, "time");
  line.record = {sequence->get<int64_t>(), made.facts,
                 line.exported.time,       Sha256Hex(made.content),
                 TextOf(json, "source"),   made.terms.empty() ? "" : Sha256Hex(made.terms),
                 TextOf(json, "parent"),   TextOf(json, "hash")};
  return line;
}

}  // namespace

Result<std::vector<ExportedRecord>> ParseExportedRecords(std::string_view text,
                                                         const std::string& path) {
  std::vector<Line> lines;
  std::map<std::string, std::string> sources;  // by their hashes
  std::string parent(kFirstParent);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    auto line = ReadLine(text.substr(at, end - at));
    at = end + 1;
    const auto fault = [&](std::string_view what) {
      return UsageError(fmt::format("{}:{}: {}", path, lines.size() + 1, what));
    };
    if (!line) return fault("this is no record as assay archive export writes it");
    if (line->record.parent != parent || RecordHash(line->record) != line->record.hash)
      return fault("the record is not as it was exported: export the archive again");
    parent = line->record.hash;
    if (!line->text.empty()) sources[Sha256Hex(line->text)] = line->text;
    lines.push_back(std::move(*line));
  }
  std::vector<ExportedRecord> records;
  for (Line& line : lines) {
    if (!line.record.source.empty()) {
      const auto found = sources.find(line.record.source);
      if (found == sources.end())
        return UsageError(
            fmt::format("{}:{}: the source is missing, or has changed", path, records.size() + 1));
      line.exported.record.source = found->second;
    }
    records.push_back(std::move(line.exported));
  }
  return records;
}

}  // namespace assay
