// Verdicts of a run of imported candidates, in the layouts of those who wrote the candidates. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "run/rows.h"

namespace assay {

// A file of the export, by its path below the export's folder.
using ExportedFiles = std::map<std::string, std::string>;

// A row of a run, and the origin that the import wrote for its candidate (a JSON object).
struct JudgedImport {
  const RunRow* row = nullptr;
  std::string origin;
};

// Pairs rows with the lines of origin.jsonl, by the ends of their paths; the newest row of a
// candidate counts. Errors (kUsage): a line that is no origin.
Result<std::vector<JudgedImport>> PairWithOrigins(const std::vector<RunRow>& rows,
                                                  const std::string& origins);

// traces/AUTHOR/OP_TYPE/DEFINITION.jsonl: a trace a verdict. Candidates of other formats are left
// out.
ExportedFiles FlashInferTraces(const std::vector<JudgedImport>& judged);

// results/SUBMISSION.json: a result a submission, with its cases.
ExportedFiles PopcornResults(const std::vector<JudgedImport>& judged);

}  // namespace assay
