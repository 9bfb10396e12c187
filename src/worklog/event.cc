#include "worklog/event.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSchema = "assay.match/1";

constexpr std::array<std::pair<Player, std::string_view>, 3> kPlayerNames = {{
    {Player::kHand, "hand"},
    {Player::kModel, "model"},
    {Player::kTogether, "together"},
}};

// In the order of MatchEvent.
constexpr std::array<std::string_view, 8> kEventNames = {
    "begun", "predicted", "series", "answered", "attempted", "measured", "besides", "dueled"};

std::string Text(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

int64_t Number(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

int Count(const Json& json, const char* key) { return static_cast<int>(Number(json, key)); }

void Add(const MatchBegun& event, Json* json) {
  (*json)["worklog"] = event.worklog;
  (*json)["problem"] = event.problem;
  (*json)["reference"] = event.reference_hash;
  (*json)["terms"] = Json::parse(event.terms, nullptr, false);
  (*json)["tier"] = event.tier;
}
void Add(const Predicted& event, Json* json) {
  (*json)["regime"] = event.regime;
  (*json)["ratio"] = event.ratio;
  (*json)["reason"] = event.reason;
}
void Add(const SeriesBegun& event, Json* json) {
  (*json)["number"] = event.number;
  (*json)["player"] = PlayerName(event.player);
  (*json)["proposer"] = event.proposer;
  (*json)["system"] = event.system;
  (*json)["prompt"] = event.prompt;
  (*json)["provenance"] = event.provenance;
}
void Add(const Answered& event, Json* json) {
  (*json)["series"] = event.series;
  (*json)["number"] = event.number;
  (*json)["prompt"] = event.prompt;
  (*json)["model"] = event.model;
  (*json)["finish"] = event.finish;
  (*json)["text"] = event.text;
  (*json)["trouble"] = event.trouble;
  (*json)["tokens_in"] = event.tokens_in;
  (*json)["tokens_out"] = event.tokens_out;
}
void Add(const Attempted& event, Json* json) {
  (*json)["version"] = event.version;
  (*json)["player"] = PlayerName(event.player);
  (*json)["file"] = event.file;
  (*json)["source"] = event.source_hash;
  (*json)["why"] = event.why;
  (*json)["answer"] = event.answer;
}
void Add(const Measured& event, Json* json) {
  (*json)["version"] = event.version;
  (*json)["verdict"] = event.verdict_hash;
  (*json)["trouble"] = event.trouble;
}
void Add(const Besides& event, Json* json) {
  (*json)["verdict"] = event.verdict_hash;
  (*json)["why"] = event.why;
}
void Add(const Dueled& event, Json* json) {
  (*json)["version"] = event.version;
  (*json)["other"] = event.other;
  (*json)["verdict"] = event.verdict_hash;
  (*json)["trouble"] = event.trouble;
}

// "v12": what NextVersion gives. Names stand in paths and reports.
bool IsVersion(std::string_view name) {
  return name.size() > 1 && name.size() < 12 &&
         std::string_view("vmt").find(name.front()) != std::string_view::npos &&
         name.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

// "versions/v12.cpp": within the worklog's folder.
bool IsVersionFile(std::string_view file, std::string_view version) {
  constexpr std::string_view kFolder = "versions/";
  if (!file.starts_with(kFolder)) return false;
  file.remove_prefix(kFolder.size());
  if (!file.starts_with(version)) return false;
  file.remove_prefix(version.size());
  return file.size() > 1 && file.size() < 8 && file.front() == '.' &&
         file.find_first_not_of("abcdefghijklmnopqrstuvwxyz", 1) == std::string_view::npos;
}

std::optional<MatchEvent> EventOf(const Json& json) {
  const std::string kind = Text(json, "event");
  const Player player = PlayerFromName(Text(json, "player")).value_or(Player::kHand);
  if (kind == "begun")
    return MatchBegun{Text(json, "worklog"), Text(json, "problem"), Text(json, "reference"),
                      json.value("terms", Json::object()).dump(), Count(json, "tier")};
  if (kind == "predicted") {
    const auto ratio = json.find("ratio");
    return Predicted{Text(json, "regime"),
                     ratio != json.end() && ratio->is_number() ? ratio->get<double>() : 0,
                     Text(json, "reason")};
  }
  if (kind == "series")
    return SeriesBegun{Count(json, "number"),  player,
                       Text(json, "proposer"), Text(json, "system"),
                       Text(json, "prompt"),   Text(json, "provenance")};
  if (kind == "answered")
    return Answered{Count(json, "series"), Count(json, "number"),     Text(json, "prompt"),
                    Text(json, "model"),   Text(json, "finish"),      Text(json, "text"),
                    Text(json, "trouble"), Number(json, "tokens_in"), Number(json, "tokens_out")};
  if (kind == "attempted")
    return Attempted{Text(json, "version"), player,
                     Text(json, "file"),    Text(json, "source"),
                     Text(json, "why"),     Count(json, "answer")};
  if (kind == "measured")
    return Measured{Text(json, "version"), Text(json, "verdict"), Text(json, "trouble")};
  if (kind == "besides") return Besides{Text(json, "verdict"), Text(json, "why")};
  if (kind == "dueled")
    return Dueled{Text(json, "version"), Text(json, "other"), Text(json, "verdict"),
                  Text(json, "trouble")};
  return std::nullopt;
}

}  // namespace

std::string_view PlayerName(Player player) {
  for (const auto& [each, name] : kPlayerNames)
    if (each == player) return name;
  return "hand";
}

std::optional<Player> PlayerFromName(std::string_view name) {
  for (const auto& [player, each] : kPlayerNames)
    if (each == name) return player;
  return std::nullopt;
}

std::string VerdictHashOf(const MatchEvent& event) {
  if (const auto* measured = std::get_if<Measured>(&event)) return measured->verdict_hash;
  if (const auto* besides = std::get_if<Besides>(&event)) return besides->verdict_hash;
  if (const auto* dueled = std::get_if<Dueled>(&event)) return dueled->verdict_hash;
  return {};
}

std::string MatchNoteName(const MatchEvent& event) {
  return fmt::format("worklog/{}", kEventNames[event.index()]);
}

std::string MatchNoteToJson(const MatchNote& note) {
  Json json = {{"schema", kSchema},
               {"event", kEventNames[note.event.index()]},
               {"previous", note.previous},
               {"outside", note.outside}};
  std::visit([&](const auto& event) { Add(event, &json); }, note.event);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<MatchNote> MatchNoteFromJson(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || Text(json, "schema") != kSchema)
    return UsageError("not a note of a match");
  const auto event = EventOf(json);
  if (!event) return UsageError(fmt::format("no such event of a match: {}", Text(json, "event")));
  const auto* attempted = std::get_if<Attempted>(&*event);
  const auto* measured = std::get_if<Measured>(&*event);
  const auto* dueled = std::get_if<Dueled>(&*event);
  if ((attempted != nullptr &&
       (!IsVersion(attempted->version) || !IsVersionFile(attempted->file, attempted->version))) ||
      (measured != nullptr && !IsVersion(measured->version)) ||
      (dueled != nullptr && (!IsVersion(dueled->version) || !IsVersion(dueled->other))))
    return UsageError("no such version of a match");
  MatchNote note{*event, Text(json, "previous"), {}};
  if (const auto outside = json.find("outside"); outside != json.end() && outside->is_array())
    for (const Json& id : *outside)
      if (id.is_string()) note.outside.push_back(id.get<std::string>());
  return note;
}

}  // namespace assay
