// Candidates as the archive holds them: sources with their verdicts, and of searches the prompts
// and answers that they came from. The material of datasets.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "archive/store.h"
#include "base/result.h"
#include "model/verdict.h"

namespace assay {

struct Sample {
  std::string name, source;  // of the candidate; the source is empty if the answer had no code
  std::optional<Verdict> verdict;  // nullopt: nobody judged it
  // Of a finalist: the verdict of its second judgement, on fresh values and all sizes.
  std::optional<Verdict> confirmed = {};
  // Of searches; else empty.
  std::string search = {}, key = {};  // of its judgement, or of its question
  std::string parent = {};            // key of the sample that the question was about
  std::string proposer = {};
  // Of proposers that are asked; else empty.
  std::string system = {}, prompt = {}, answer = {}, model = {};

  // The verdict that counts.
  const Verdict& Counts() const { return confirmed ? *confirmed : *verdict; }
};

// In the order of their verdicts. `notice` is told of records that cannot be read, which are left
// out. Errors: the archive cannot be read on.
Result<std::vector<Sample>> ReadSamples(Store& store,
                                        const std::function<void(const std::string&)>& notice);

}  // namespace assay
