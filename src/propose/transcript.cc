#include "propose/transcript.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "propose/json_read.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSchema = "assay.transcript/1";
constexpr size_t kFileBytesMax = size_t{1} << 30;

bool IsWhole(std::string_view line) { return Json::accept(line); }

// A last line without its end is cut off before more is added: so it must be a part of an entry,
// lest a wrong path cost another file its end.
Result<void> CheckIsTranscript(std::string_view text, const std::string& path) {
  Transcript lines;
  ASSAY_RETURN_IF_ERROR(lines.AddLines(text, path));
  const std::string begin = fmt::format(R"({{"schema":"{}")", kSchema);
  const size_t last = text.rfind('\n') == std::string_view::npos ? 0 : text.rfind('\n') + 1;
  const std::string_view torn = text.substr(last);
  if (torn.substr(0, begin.size()) == std::string_view(begin).substr(0, torn.size())) return {};
  return UsageError(fmt::format("{} is no transcript: record to another file", path));
}

}  // namespace

std::string PromptHash(const Prompt& prompt) {
  return Sha256Hex(prompt.system + '\0' + prompt.text);
}

std::string TranscriptLine(const TranscriptEntry& entry) {
  const Answer& answer = entry.answer;
  const Json json = {{"schema", kSchema},
                     {"key", entry.key},
                     {"prompt_hash", entry.prompt_hash},
                     {"proposer", entry.proposer},
                     {"provenance", entry.provenance},
                     {"time", entry.time},
                     {"system", entry.system},
                     {"prompt", entry.prompt},
                     {"answer", answer.text},
                     {"reasoning", answer.reasoning},
                     {"model", answer.model},
                     {"finish", answer.finish},
                     {"usage",
                      {{"tokens_in", answer.usage.tokens_in},
                       {"tokens_out", answer.usage.tokens_out},
                       {"usd", answer.usage.usd},
                       {"wall_s", answer.usage.wall_s}}}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<TranscriptEntry> ParseTranscriptLine(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (json.is_discarded() || TextIn(json, "schema") != kSchema)
    return UsageError(fmt::format("not an entry of a transcript ({})", kSchema));
  for (const char* name : {"key", "prompt_hash", "answer"})
    if (const Json* member = Member(json, name); member == nullptr || !member->is_string())
      return UsageError(fmt::format("not an entry of a transcript: it lacks '{}'", name));
  TranscriptEntry entry;
  entry.key = TextIn(json, "key");
  entry.prompt_hash = TextIn(json, "prompt_hash");
  entry.proposer = TextIn(json, "proposer");
  entry.provenance = TextIn(json, "provenance");
  entry.time = TextIn(json, "time");
  entry.system = TextIn(json, "system");
  entry.prompt = TextIn(json, "prompt");
  entry.answer.text = TextIn(json, "answer");
  entry.answer.reasoning = TextIn(json, "reasoning");
  entry.answer.model = TextIn(json, "model");
  entry.answer.finish = TextIn(json, "finish");
  if (const Json* usage = Member(json, "usage")) {
    entry.answer.usage.tokens_in = CountIn(*usage, "tokens_in");
    entry.answer.usage.tokens_out = CountIn(*usage, "tokens_out");
    entry.answer.usage.usd = NumberIn(*usage, "usd");
    entry.answer.usage.wall_s = NumberIn(*usage, "wall_s");
  }
  return entry;
}

void Transcript::Add(TranscriptEntry entry) {
  const auto old = by_key_.find(entry.key);
  if (old != by_key_.end()) {
    auto [from, to] = keys_of_prompt_.equal_range(old->second.prompt_hash);
    for (; from != to; ++from)
      if (from->second == entry.key) {
        keys_of_prompt_.erase(from);
        break;
      }
  }
  keys_of_prompt_.emplace(entry.prompt_hash, entry.key);
  by_key_[entry.key] = std::move(entry);
}

Result<void> Transcript::AddLines(std::string_view text, const std::string& path) {
  return ForEachLine(text, path, &IsWhole, [this](std::string_view line) -> Result<void> {
    if (line.empty()) return {};
    ASSAY_ASSIGN_OR_RETURN(TranscriptEntry entry, ParseTranscriptLine(line));
    Add(std::move(entry));
    return {};
  });
}

const TranscriptEntry* Transcript::FindKey(const std::string& key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : &found->second;
}

const TranscriptEntry* Transcript::Find(const Prompt& prompt) const {
  if (const TranscriptEntry* entry = FindKey(prompt.key)) return entry;
  const auto [from, to] = keys_of_prompt_.equal_range(PromptHash(prompt));
  if (from == to) return nullptr;
  const auto count = static_cast<uint64_t>(std::distance(from, to));
  const uint64_t place = FastHash(prompt.key.data(), prompt.key.size()) % count;
  return FindKey(std::next(from, static_cast<std::ptrdiff_t>(place))->second);
}

Result<std::unique_ptr<Proposer>> ReplayProposer::Open(std::string name, const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kFileBytesMax));
  std::unique_ptr<ReplayProposer> replay(new ReplayProposer(std::move(name), path));
  ASSAY_RETURN_IF_ERROR(replay->transcript_.AddLines(text, path));
  if (replay->transcript_.size() == 0)
    return UsageError(fmt::format("{} has no answers: record some first", path));
  return replay;
}

Usage ReplayProposer::Reservation(const Prompt& prompt) const {
  const TranscriptEntry* entry = transcript_.Find(prompt);
  return entry == nullptr ? Usage() : entry->answer.usage;
}

Result<Answer> ReplayProposer::Propose(const Prompt& prompt, StopToken stop) {
  if (stop.stopped()) return Fail(ErrorKind::kInterrupted, "interrupted");
  const TranscriptEntry* entry = transcript_.Find(prompt);
  if (entry == nullptr)
    return UsageError(fmt::format(
        "{} has no answer to {} (prompt {}): replay the search that it was recorded from, or let "
        "another proposer answer",
        path_, prompt.key, PromptHash(prompt).substr(0, 12)));
  return entry->answer;
}

RecordingProposer::RecordingProposer(std::unique_ptr<Proposer> inner, LineFile file,
                                     std::string provenance)
    : inner_(std::move(inner)), provenance_(std::move(provenance)), file_(std::move(file)) {}

Result<std::unique_ptr<Proposer>> RecordingProposer::Open(std::unique_ptr<Proposer> inner,
                                                          const std::string& path,
                                                          std::string provenance) {
  std::error_code unreadable;  // LineFile tells of it
  if (std::filesystem::is_regular_file(path, unreadable)) {
    ASSAY_ASSIGN_OR_RETURN(const std::string before, ReadFile(path, kFileBytesMax));
    ASSAY_RETURN_IF_ERROR(CheckIsTranscript(before, path));
  }
  ASSAY_ASSIGN_OR_RETURN(LineFile file, LineFile::Open(path, "search", &IsWhole));
  ASSAY_ASSIGN_OR_RETURN(const std::string text, file.Read());
  std::unique_ptr<RecordingProposer> recording(
      new RecordingProposer(std::move(inner), std::move(file), std::move(provenance)));
  ASSAY_RETURN_IF_ERROR(recording->transcript_.AddLines(text, path));
  return recording;
}

Usage RecordingProposer::Reservation(const Prompt& prompt) const {
  return inner_->Reservation(prompt);
}

Result<Answer> RecordingProposer::Propose(const Prompt& prompt, StopToken stop) {
  const std::string hash = PromptHash(prompt);
  {
    const std::lock_guard lock(mutex_);
    const TranscriptEntry* entry = transcript_.FindKey(prompt.key);
    if (entry != nullptr && entry->prompt_hash == hash) return entry->answer;
  }
  ASSAY_ASSIGN_OR_RETURN(Answer answer, inner_->Propose(prompt, stop));
  const TranscriptEntry entry{prompt.key,     hash,          inner_->Name(), provenance_,
                              UtcTimestamp(), prompt.system, prompt.text,    answer};
  const std::lock_guard lock(mutex_);
  ASSAY_RETURN_IF_ERROR(file_.Append(TranscriptLine(entry)));
  transcript_.Add(entry);
  return answer;
}

}  // namespace assay
