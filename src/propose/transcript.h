// Transcripts: prompts and their answers, a JSON line each (docs/proposers.md,
// docs/transcript.schema.json). Recorded by one proposer, replayed by another.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/line_file.h"
#include "propose/proposer.h"

namespace assay {

struct TranscriptEntry {
  std::string key, prompt_hash;
  std::string proposer;    // its name
  std::string provenance;  // who or what answered, and under which terms; free text
  std::string time;        // when: ISO 8601, UTC
  std::string system, prompt;
  Answer answer;
};

// SHA-256 of what is asked: the prompt's system text, a zero byte, and its text.
std::string PromptHash(const Prompt& prompt);

std::string TranscriptLine(const TranscriptEntry& entry);
// Errors: kUsage, "not an entry of a transcript: ...".
Result<TranscriptEntry> ParseTranscriptLine(std::string_view line);

// The answers of a transcript.
class Transcript {
 public:
  // Adds one; of several with one key the last counts.
  void Add(TranscriptEntry entry);
  // Reads the lines of `text`, of the file at `path`. Errors: kUsage, with the line's number.
  Result<void> AddLines(std::string_view text, const std::string& path);
  // The entry with the prompt's key; else one with the same prompt under another key, always the
  // same one for the same key; else nullptr.
  const TranscriptEntry* Find(const Prompt& prompt) const;
  const TranscriptEntry* FindKey(const std::string& key) const;
  size_t size() const { return by_key_.size(); }

 private:
  std::map<std::string, TranscriptEntry> by_key_;
  std::multimap<std::string, std::string> keys_of_prompt_;  // hash -> key
};

// Answers from a file: no call, the same answers each time. Their usage is as recorded, so that
// budgets end a search where they ended the first one; its calls cost nothing.
class ReplayProposer : public Proposer {
 public:
  // Errors: kUsage.
  static Result<std::unique_ptr<Proposer>> Open(std::string name, const std::string& path);
  std::string Name() const override { return name_; }
  Usage Reservation(const Prompt& prompt) const override;
  bool IsFree() const override { return true; }
  // Errors: kUsage (the transcript has no such answer).
  Result<Answer> Propose(const Prompt& prompt, StopToken stop) override;

 private:
  ReplayProposer(std::string name, std::string path) : name_(std::move(name)), path_(path) {}
  std::string name_, path_;
  Transcript transcript_;
};

// Passes prompts on, and writes each answer to a file before it returns it. A prompt whose answer
// is in the file already, under its key, is not asked again.
class RecordingProposer : public Proposer {
 public:
  // Errors: kUsage (the file holds something else), kEnvironment (it cannot be written, or another
  // process has it).
  static Result<std::unique_ptr<Proposer>> Open(std::unique_ptr<Proposer> inner,
                                                const std::string& path, std::string provenance);
  std::string Name() const override { return inner_->Name(); }
  Usage Reservation(const Prompt& prompt) const override;
  Result<void> Check(const Prompt& prompt) const override { return inner_->Check(prompt); }
  Result<Answer> Propose(const Prompt& prompt, StopToken stop) override;

 private:
  RecordingProposer(std::unique_ptr<Proposer> inner, LineFile file, std::string provenance);
  const std::unique_ptr<Proposer> inner_;
  const std::string provenance_;
  mutable std::mutex mutex_;
  LineFile file_;  // guarded by mutex_, as is transcript_
  Transcript transcript_;
};

}  // namespace assay
