// Mined candidates whose verdict is good, as rows in KernelBook's layout (docs/mine.md). Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "mine/mined.h"
#include "run/rows.h"

namespace assay {

struct MinedPairs {
  std::vector<std::string> lines;  // JSON, without line breaks
  int64_t faster = 0;              // of them
  // Outcomes of those that are no pair, by name: "wrong"; and "not judged".
  std::map<std::string, int64_t> others;
};

// The newest verdict on a candidate counts, if it is on the candidate and the problem as they were
// mined.
MinedPairs PairsOf(const std::vector<Mined>& mined, const std::vector<RunRow>& rows);

inline constexpr const char* kPairsName = "kernelbook.jsonl";

}  // namespace assay
