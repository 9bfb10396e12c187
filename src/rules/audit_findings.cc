#include "rules/audit_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace assay {
namespace {

constexpr std::array<std::string_view, 5> kGravestFirst = {
    "zero-output", "constant-output", "ignores-input", "ignores-weights", "survivor"};

std::string_view FindingOf(std::string_view family) {
  if (family == "zeros") return "zero-output";
  if (family == "constant" || family == "mean") return "constant-output";
  if (family == "input") return "ignores-input";
  if (family == "weight") return "ignores-weights";
  return "survivor";
}

// Whether the mutant computes nothing of the problem's, so that it matters on the draws that are
// timed; single operators and roundings may well need a draw that is made for them.
bool CountsOnOrdinaryDraws(const MutantRecord& mutant) { return !MayBeEquivalent(mutant); }

AuditFinding FindingFrom(const MutantRecord& mutant) {
  AuditFinding finding{std::string(FindingOf(mutant.family)), mutant.subject, mutant.words,
                       mutant.margin, mutant.mend};
  if (mutant.result == MutantResult::kSurvived) return finding;
  finding.detail += " (on the problem's own inputs)";
  finding.margin = mutant.ordinary_margin;
  finding.mend = fmt::format("inputs as in gate 1's draw '{}'", mutant.draw);
  return finding;
}

auto Gravity(const AuditFinding& finding) {
  return std::find(kGravestFirst.begin(), kGravestFirst.end(), finding.name);
}

}  // namespace

bool MayBeEquivalent(const MutantRecord& mutant) {
  return mutant.family == "operator" || mutant.family == "precision" || mutant.family == "block";
}

bool PrecisionCounts(std::string_view precision, PrecisionClass required, bool tolerance) {
  if (precision.empty()) return true;
  const auto mutant = PrecisionClassFromName(precision);
  if (!mutant || tolerance) return false;
  // Exact outputs have no class: what matters is whether they change.
  return required == PrecisionClass::kExact || *mutant > required;
}

void CoverOperators(const std::vector<MutantRecord>& mutants,
                    std::vector<OperatorRecord>* operators) {
  for (const MutantRecord& mutant : mutants) {
    if (mutant.operator_number < 0 || mutant.result == MutantResult::kEquivalent) continue;
    OperatorRecord& changed = operators->at(static_cast<size_t>(mutant.operator_number));
    if (mutant.result == MutantResult::kSurvived && changed.mutant.empty()) {
      changed.mutant = mutant.words;
      changed.mend = mutant.mend;
    }
    changed.result = changed.mutant.empty() ? OperatorResult::kSeen : OperatorResult::kUnseen;
  }
}

std::vector<AuditFinding> FindingsOf(const std::vector<MutantRecord>& mutants, int output_count) {
  std::vector<AuditFinding> findings;
  for (const MutantRecord& mutant : mutants) {
    const bool passes_ordinary = mutant.passes_ordinary && CountsOnOrdinaryDraws(mutant);
    if (mutant.result == MutantResult::kSurvived ||
        (mutant.result == MutantResult::kKilled && passes_ordinary))
      findings.push_back(FindingFrom(mutant));
  }
  std::stable_sort(
      findings.begin(), findings.end(),
      [](const AuditFinding& a, const AuditFinding& b) { return Gravity(a) < Gravity(b); });
  if (findings.empty()) return findings;
  const std::string& gravest = findings.front().name;
  if (output_count == 1 && (gravest == "zero-output" || gravest == "constant-output"))
    findings.resize(1);
  return findings;
}

}  // namespace assay
