#include "archive/record.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/hash.h"

namespace assay {
namespace {

constexpr std::array<std::pair<RecordKind, std::string_view>, 11> kKindNames = {{
    {RecordKind::kReference, "reference"},
    {RecordKind::kCandidate, "candidate"},
    {RecordKind::kVerdict, "verdict"},
    {RecordKind::kFailure, "failure"},
    {RecordKind::kRun, "run"},
    {RecordKind::kNote, "note"},
    {RecordKind::kSearch, "search"},
    {RecordKind::kStep, "step"},
    {RecordKind::kResult, "result"},
    {RecordKind::kSteer, "steer"},
    {RecordKind::kEpisode, "episode"},
}};

}  // namespace

std::string_view RecordKindName(RecordKind kind) {
  for (const auto& [each, name] : kKindNames)
    if (each == kind) return name;
  return "note";
}

std::optional<RecordKind> RecordKindFromName(std::string_view name) {
  for (const auto& [kind, each] : kKindNames)
    if (each == name) return kind;
  return std::nullopt;
}

std::string RecordHash(const Record& record) {
  std::string text = fmt::format("assay.archive/1\n{}\n", record.sequence);
  for (const std::string_view field :
       {RecordKindName(record.facts.kind), std::string_view(record.time),
        std::string_view(record.facts.name), std::string_view(record.facts.id),
        std::string_view(record.facts.problem), std::string_view(record.facts.outcome),
        std::string_view(record.content), std::string_view(record.source),
        std::string_view(record.terms), std::string_view(record.parent)}) {
    text += fmt::format("{} ", field.size());
    text += field;
    text += '\n';
  }
  return Sha256Hex(text);
}

}  // namespace assay
