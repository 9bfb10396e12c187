// The results of a run: verdicts.jsonl, a line a candidate (docs/run.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/line_file.h"
#include "base/result.h"
#include "model/verdict.h"
#include "run/plan.h"

namespace assay {

// What became of a candidate: its verdict, or the error that stands in its place.
struct RunRow {
  std::string key;   // RunKey
  std::string date;  // ISO 8601, UTC
  int level = 0;
  int64_t problem_number = 0;
  std::string problem;  // its name
  int64_t sample = 0;
  std::string candidate;           // its file
  std::optional<Verdict> verdict;  // not set: `error` says why nobody judged it
  std::optional<Error> error;
};

// Identifies a piece of work: problem, its constants, sample, source and `settings` (the terms that
// a verdict depends on, as text). Work with an equal key is done once.
std::string RunKey(const RunPlan& plan, const RunItem& item, const std::string& settings);
// The row of an item, without verdict or error.
RunRow RowOf(const RunPlan& plan, const RunItem& item, const std::string& settings);

inline constexpr const char* kRunRowsName = "verdicts.jsonl";

// Returns true for the text of a row, whole or not.
bool IsRunRow(std::string_view text);
// One line, without its end: schema assay.run/1.
std::string RunRowToJson(const RunRow& row);
// Errors (kUsage) name the field.
Result<RunRow> RunRowFromJson(const std::string& line);

// Reads all rows of a file, but for one that a killed process began at its end. Errors (kUsage)
// name the file and the line.
Result<std::vector<RunRow>> ReadRunRows(const std::string& path);

// The file that a run adds to. One process at a time has it.
class RunRows {
 public:
  // Errors: a line that is no row (kUsage), or the file cannot be used (kEnvironment).
  static Result<RunRows> Open(const std::string& path);
  bool was_torn() const { return file_.was_torn(); }
  // In the order in which they were added.
  const std::vector<RunRow>& rows() const { return rows_; }

  // On disk when this returns. Errors: kEnvironment; the file then has none of them.
  Result<void> Append(std::vector<RunRow> rows);

 private:
  explicit RunRows(LineFile file) : file_(std::move(file)) {}

  LineFile file_;
  std::vector<RunRow> rows_;
};

// Returns, for each item of the plan, its newest row; null: it was never judged. A verdict is newer
// than any error, since an error is tried again.
std::vector<const RunRow*> RowsOfPlan(const RunPlan& plan, const std::vector<RunRow>& rows,
                                      const std::string& settings);

}  // namespace assay
