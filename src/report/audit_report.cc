#include "report/audit_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/verdict.h"
#include "report/text.h"

namespace assay {
namespace {

constexpr size_t kFindingsShown = 6;

class AuditWriter {
 public:
  AuditWriter(const std::vector<ProblemAudit>& audits, const CardStyle& style)
      : audits_(audits), frame_(style) {
    for (const ProblemAudit& audit : audits_)
      name_width_ = std::max(name_width_, DisplayWidth(Safe(audit.problem.name)));
    // The name gives way to the rest of the row.
    name_width_ = std::min(name_width_, frame_.inner_width() - kMutantsWidth - kResultWidth - 18);
  }

  std::string Write() {
    Title();
    Header();
    for (const ProblemAudit& audit : audits_) Row(audit);
    for (const ProblemAudit& audit : audits_)
      if (audit.degenerate()) Degenerate(audit);
    for (const ProblemAudit& audit : audits_)
      if (!audit.error.empty()) Failed(audit);
    Legend();
    frame_.Bottom();
    return frame_.Take();
  }

 private:
  static constexpr int kMutantsWidth = 9, kResultWidth = 22;

  std::string Safe(std::string_view text) const { return Printable(text, frame_.style().unicode); }
  std::string Padded(const std::string& text, int width) const {
    const std::string shown = Shortened(text, width, frame_.style().unicode);
    return shown + std::string(static_cast<size_t>(width - DisplayWidth(shown)), ' ');
  }

  void Title() {
    const auto degenerate = std::count_if(audits_.begin(), audits_.end(),
                                          [](const auto& audit) { return audit.degenerate(); });
    const auto failed = std::count_if(audits_.begin(), audits_.end(),
                                      [](const auto& audit) { return !audit.error.empty(); });
    std::string result =
        degenerate == 0 ? std::string("none degenerate") : fmt::format("{} degenerate", degenerate);
    if (failed > 0) result += fmt::format(", {} not audited", failed);
    frame_.Top(fmt::format("audit {} {}", GlyphsOf(frame_.style()).dot,
                           Counted(static_cast<long long>(audits_.size()), "problem")),
               result);
  }

  void Header() {
    frame_.Row({{Padded("problem", name_width_) + "  " + Padded("killed", kMutantsWidth) +
                     Padded("result", kResultWidth) + "nearest to passing",
                 Tone::kFaint}});
  }

  void Row(const ProblemAudit& audit) {
    const int killed = audit.Count(MutantResult::kKilled);
    const int tried = killed + audit.Count(MutantResult::kSurvived);
    std::string result = "clean", nearest;
    Tone tone = Tone::kGood;
    if (!audit.error.empty()) {
      result = "not audited";
      tone = Tone::kWarning;
    } else if (audit.degenerate()) {
      result = audit.findings.front().name;
      tone = Tone::kBad;
    }
    if (const MutantRecord* weakest = audit.Weakest(); weakest && !ByOwnCheck(audit))
      nearest = fmt::format("{} {}", FormatMargin(weakest->margin), Safe(weakest->words));
    const std::string counts = tried > 0 ? fmt::format("{}/{}", killed, tried) : std::string();
    frame_.Row({{Padded(Safe(audit.problem.name), name_width_) + "  ", Tone::kStrong},
                {Padded(counts, kMutantsWidth), Tone::kPlain},
                {Padded(result, kResultWidth), tone},
                {nearest, Tone::kFaint}});
  }

  void Degenerate(const ProblemAudit& audit) {
    std::string right;
    if (audit.draws > 0)
      right = fmt::format("{}, {}", Counted(audit.draws, "draw"),
                          ByOwnCheck(audit) ? "its own check" : Safe(audit.tolerance));
    frame_.Section(Safe(audit.problem.name), {right, Tone::kFaint});
    for (size_t i = 0; i < std::min(kFindingsShown, audit.findings.size()); ++i) {
      const AuditFinding& finding = audit.findings[i];
      std::string text = finding.name + ": " + Safe(finding.detail);
      if (finding.margin && ByOwnCheck(audit))
        text += ": the problem's own check lets it pass";
      else if (finding.margin)
        text += fmt::format(": passes, at {} of the bound", FormatMargin(*finding.margin));
      frame_.Prose(text, Tone::kBad);
      frame_.Labelled("  mend", finding.mend.empty()
                                    ? std::string("no draw that was tried would show it")
                                    : Mend(finding));
    }
    if (audit.findings.size() > kFindingsShown)
      frame_.Prose(
          fmt::format("and {} more; --json lists them", audit.findings.size() - kFindingsShown),
          Tone::kFaint);
  }

  static bool ByOwnCheck(const ProblemAudit& audit) { return audit.tolerance == kByOwnCheck; }

  std::string Mend(const AuditFinding& finding) const {
    return Safe(finding.mend) + (finding.margin ? " would show it" : "");
  }

  void Failed(const ProblemAudit& audit) {
    frame_.Section(Safe(audit.problem.name), {"not audited", Tone::kWarning});
    frame_.Prose(Safe(audit.error), Tone::kPlain);
  }

  void Legend() {
    frame_.Section("how to read this", {});
    int equivalent = 0, left_out = 0, seen = 0, unseen = 0;
    double seconds = 0;
    for (const ProblemAudit& audit : audits_) {
      equivalent += audit.Count(MutantResult::kEquivalent);
      left_out += audit.left_out;
      seen += audit.Count(OperatorResult::kSeen);
      unseen += audit.Count(OperatorResult::kUnseen);
      seconds += audit.seconds;
    }
    std::string text =
        "killed: mutants of the reference that gate 1 catches, of those that change an output. "
        "nearest to passing: the smallest error of a mutant, over its bound; up to 1 passes.";
    if (equivalent > 0) text += fmt::format(" {} changed nothing.", Counted(equivalent, "mutant"));
    if (seen + unseen > 0)
      text += fmt::format(" Operators seen: {} of {}, all of whose mutants are killed.", seen,
                          seen + unseen);
    if (left_out > 0)
      text += fmt::format(" {} left out, as others are alike.", Counted(left_out, "mutant"));
    frame_.Prose(text, Tone::kFaint);
    frame_.Prose(
        fmt::format("{} a problem",
                    FormatDuration(seconds * 1e9 /
                                   std::max<double>(1, static_cast<double>(audits_.size())))),
        Tone::kFaint);
  }

  const std::vector<ProblemAudit>& audits_;
  Frame frame_;
  int name_width_ = 7;
};

}  // namespace

std::string FormatMargin(double margin) {
  if (std::isnan(margin) || std::isinf(margin) || margin >= 1e6) return "> 1e6";
  return fmt::format("{:.2g}", margin);
}

std::string RenderAudit(const std::vector<ProblemAudit>& audits, const CardStyle& style) {
  return AuditWriter(audits, style).Write();
}

}  // namespace assay
