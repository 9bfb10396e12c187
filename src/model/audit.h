// What an audit finds out about a problem: which mutants of its reference gate 1 tells from the
// reference.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/problem.h"

namespace assay {

enum class MutantResult {
  kKilled,      // a draw shows it
  kSurvived,    // it passes every draw of gate 1
  kEquivalent,  // it changes no output, on these draws and on those beyond them
};
std::string_view MutantResultName(MutantResult result);  // "killed", "survived", "equivalent"

struct MutantRecord {
  // "zeros", "constant", "mean", "block", "batch", "copy", "input", "weight", "precision",
  // "operator"
  std::string family;
  std::string subject;  // the output, input or weight that it is about; or empty
  std::string words;    // what it does
  std::string mend;     // what would show it, where it survived and something would; else empty
  MutantResult result = MutantResult::kSurvived;
  // Its largest error over its bound: 1 is the bound, infinity beyond every bound. Of one that is
  // far off, up to the draw that showed it. And the same of the ordinary draws alone.
  double margin = 0, ordinary_margin = 0;
  std::string draw;             // kind of the draw with that margin; empty where none was made
  bool passes_ordinary = true;  // every ordinary draw: only others show it, if any
};

// Why a problem is degenerate.
struct AuditFinding {
  // "random-reference", "meaningless-reference", "zero-output", "constant-output", "ignores-input",
  // "ignores-weights", "survivor"
  std::string name;
  std::string subject;  // as the mutant's
  std::string detail;   // the mutant in words, or what the reference host says
  std::optional<double> margin;
  std::string mend;
};

struct ProblemAudit {
  ProblemRequest problem;
  std::string error;  // why it could not be audited; else empty
  std::string tolerance, required_class;
  int draws = 0;     // that say something
  int left_out = 0;  // mutants that were too many
  double seconds = 0;
  std::vector<MutantRecord> mutants;
  std::vector<AuditFinding> findings;  // gravest first

  bool degenerate() const { return !findings.empty(); }
  int Count(MutantResult result) const;
  // The killed mutant that came nearest to passing; null without any.
  const MutantRecord* Weakest() const;
};

}  // namespace assay
