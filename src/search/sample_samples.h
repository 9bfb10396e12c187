// Samples of two chains and of a plain verdict, for tests; never linked into assay.
#pragma once

#include <string>
#include <vector>

#include "model/sample_verdicts.h"
#include "search/dataset.h"

namespace assay {

inline Sample SampleOf(const std::string& key, const std::string& parent, Outcome outcome,
                       double speedup = 0) {
  Sample sample;
  sample.name = "candidate.cpp";
  sample.source = "int " + key.substr(key.find('/') + 1) + ";";
  sample.search = "0123456789ab";
  sample.key = key;
  sample.parent = parent;
  sample.proposer = "openai:a-model@http://127.0.0.1:8000";
  sample.system = "be fast";
  sample.prompt = parent.empty() ? "write softmax" : "repair " + parent;
  sample.answer = "```cpp\n" + sample.source + "\n```";
  sample.model = "a-model";
  Verdict& verdict = sample.verdict.emplace(SampleVerdict(outcome));
  verdict.id = "id of " + key;
  if (speedup > 0) {
    BaselineResult& result = verdict.speed->baselines.at(verdict.speed->headline);
    result.speedup = speedup;
    result.ci_low = 0.98 * speedup;
    result.ci_high = 1.02 * speedup;
    result.certified_speedup = outcome == Outcome::kFaster ? 0.95 * speedup : 0;
  }
  return sample;
}

// Chain 0: wrong, then faster. Chain 1: slower. Chain 2: no code, then a foul, then unjudged. And a
// Python candidate of `assay judge`.
inline std::vector<Sample> SampleSamples() {
  std::vector<Sample> samples = {SampleOf("judge/0/0", "", Outcome::kWrong),
                                 SampleOf("judge/0/1", "judge/0/0", Outcome::kFaster, 2),
                                 SampleOf("judge/1/0", "", Outcome::kSlower, 0.8),
                                 SampleOf("propose/2/0", "", Outcome::kWrong),
                                 SampleOf("judge/2/1", "propose/2/0", Outcome::kFoul),
                                 SampleOf("judge/2/2", "judge/2/1", Outcome::kWrong)};
  samples[3].source.clear();
  samples[3].verdict.reset();
  samples[5].verdict.reset();
  Sample plain;
  plain.name = "mine.py";
  plain.source = "class ModelNew: ...";
  plain.verdict = SampleVerdict(Outcome::kFaster);
  plain.verdict->candidate.form = CandidateForm::kPython;
  plain.verdict->candidate.language = Language::kPython;
  samples.push_back(plain);
  return samples;
}

inline DatasetTerms SampleTerms() {
  DatasetTerms terms;
  terms.licence = "Apache-2.0";
  terms.reference = [](const ProblemRecord&) { return "class Model: ..."; };
  return terms;
}

}  // namespace assay
