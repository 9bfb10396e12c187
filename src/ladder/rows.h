// Raw results of ladders: a file of JSON lines, a row a verdict, without its samples
// (docs/ladder.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/line_file.h"
#include "base/result.h"
#include "model/verdict.h"

namespace assay {

struct LadderRow {
  std::string judge;   // its commit (ladder/judge_name.h)
  std::string date;    // ISO 8601, UTC
  std::string ladder;  // the name of its folder
  Verdict verdict;
};

// One line, without its end.
std::string RowToJson(const LadderRow& row);

// Rows of the ladder of that name; of every one where `ladder` is empty. A row that a killed
// process began, at the end, is passed over. Errors (kUsage) name the file, the line and the field.
Result<std::vector<LadderRow>> ParseRows(std::string_view text, const std::string& path,
                                         const std::string& ladder);
// The same of a file.
Result<std::vector<LadderRow>> ReadRows(const std::string& path, const std::string& ladder);

// The file that a call of `assay ladder` adds to. One process at a time has it.
class RowFile {
 public:
  // Makes the file where there is none, and cuts off a torn row. Errors: its text is none of rows
  // (kUsage), another process has it, or it cannot be written (kEnvironment).
  static Result<RowFile> Open(const std::string& path);
  bool was_torn() const { return file_.was_torn(); }
  const std::vector<LadderRow>& rows() const { return rows_; }

  // On disk when this returns. Errors: kEnvironment.
  Result<void> Append(const LadderRow& row);

 private:
  explicit RowFile(LineFile file) : file_(std::move(file)) {}

  LineFile file_;
  std::vector<LadderRow> rows_;
};

// A rung is not judged again if a row agrees with it in all of these.
struct RowKey {
  std::string judge, ladder;
  std::string candidate_hash, problem_hash;
  std::map<std::string, std::string> set;
  std::string device;   // "cpu" or "cuda"
  std::string machine;  // the processor's name, or the GPU's; empty: not known
  int threads = 0;
  std::vector<std::string> baselines;
};
// The newest row that agrees; null where none does.
const LadderRow* FindRow(const std::vector<LadderRow>& rows, const RowKey& key);

// A rung's time beside one baseline's; nullopt where it was not timed.
struct RungSpeed {
  double time_ns = 0, library_ns = 0;
  double percent = 0, low = 0, high = 0;  // of the library's speed, and the judge's interval
  double confidence = 0;                  // of the interval
};
std::optional<RungSpeed> SpeedOf(const Verdict& verdict, const std::string& baseline);

}  // namespace assay
