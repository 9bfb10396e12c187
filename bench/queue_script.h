// The script of benchmarks of the queue: works, workers and verdicts that cost nothing to make.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>

#include "archive/record.h"
#include "queue/work_queue.h"

namespace assay {

// About what a candidate's source and a verdict have.
inline constexpr size_t kScriptedRequestBytes = 3000, kScriptedVerdictBytes = 2500;

// Digits that a compressor can do as little with as with real text.
inline void FillUp(std::string* text, size_t bytes, uint64_t seed) {
  while (text->size() < bytes) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    *text += fmt::format("{:08x}", seed >> 32);
  }
}

inline NewWork ScriptedWork(const std::string& run, int64_t number) {
  NewWork work;
  work.run = run;
  work.key = fmt::format("candidate {}", number);
  work.group = fmt::format("problem {}", number / 16);
  work.device = "cpu";
  work.request = fmt::format("{{\"number\": {}, \"source\": \"", number);
  FillUp(&work.request, kScriptedRequestBytes, static_cast<uint64_t>(number));
  work.request += "\"}";
  return work;
}

inline WorkerFacts ScriptedWorker(const std::string& name) {
  return {name, "node", "cpu", "scripted", "1", "", ""};
}

inline std::string ScriptedVerdict(const std::string& key) {
  std::string verdict = fmt::format("{{\"key\": \"{}\", \"filler\": \"", key);
  FillUp(&verdict, kScriptedVerdictBytes, std::hash<std::string>()(key));
  return verdict + "\"}";
}

inline NewRecord ScriptedRecord(const EndedWork& work) {
  NewRecord record;
  record.facts = {RecordKind::kVerdict, work.key, "", "softmax", "faster"};
  record.content = work.end.verdict;
  record.once = true;
  return record;
}

}  // namespace assay
