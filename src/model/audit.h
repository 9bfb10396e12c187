// The record of a problem's audit: which mutants of its reference gate 1 tells from the reference.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/problem.h"

namespace assay {

enum class MutantResult {
  kKilled,      // fails a draw of gate 1
  kSurvived,    // passes every draw of gate 1
  kEquivalent,  // changes no output, on these draws or further ones
};
std::string_view MutantResultName(MutantResult result);  // "killed", "survived", "equivalent"

enum class OperatorResult {
  kSeen,       // each of its mutants that changes an output fails a draw
  kUnseen,     // a mutant that changes an output passes every draw
  kRedundant,  // no mutant changes an output: it may be skipped
};
std::string_view OperatorResultName(OperatorResult result);  // "seen", "unseen", "redundant"

// An operator that the reference's forward calls.
struct OperatorRecord {
  std::string name;  // PyTorch's: "addmm", "relu"
  int line = 0;      // of the problem's file; 0: not known
  OperatorResult result = OperatorResult::kRedundant;
  std::string mutant = {}, mend = {};  // of an unseen one, as MutantRecord's
};

struct MutantRecord {
  // "zeros", "constant", "mean", "block", "batch", "copy", "input", "weight", "precision",
  // "operator"
  std::string family;
  std::string subject;  // the output, input or weight concerned; may be empty
  std::string words;    // its change, in words
  std::string mend;     // inputs that would kill a survivor, in words; empty: none found
  MutantResult result = MutantResult::kSurvived;
  // The largest error over its bound, of all draws and of the ordinary ones: 1 is the bound,
  // infinity beyond every bound. A mutant that is far off runs no further draws.
  double margin = 0, ordinary_margin = 0;
  std::string draw;             // kind of the draw with that margin; empty: none ran
  bool passes_ordinary = true;  // passes every ordinary draw
  int operator_number = -1;     // of the operator that it changes; -1: none
};

// A reason why a problem is degenerate.
struct AuditFinding {
  // "random-reference", "meaningless-reference", "zero-output", "constant-output", "ignores-input",
  // "ignores-weights", "survivor", "same-values"
  std::string name;
  std::string subject;  // as the mutant's
  std::string detail;   // the mutant in words, or the reference host's message
  std::optional<double> margin;
  std::string mend;
};

struct ProblemAudit {
  ProblemRequest problem;
  std::string error;  // reason why it could not be audited; else empty
  std::string tolerance, required_class;
  int draws = 0;     // draws that were not dropped
  int left_out = 0;  // weights and operators beyond the limit
  double seconds = 0;
  std::vector<MutantRecord> mutants;
  std::vector<OperatorRecord> operators;  // in the order of their calls
  std::vector<AuditFinding> findings;     // gravest first

  bool degenerate() const { return !findings.empty(); }
  int Count(MutantResult result) const;
  int Count(OperatorResult result) const;
  // Returns the killed mutant that came nearest to passing, one of `mutants`; null: none killed.
  const MutantRecord* Weakest() const;
};

}  // namespace assay
