#include "studies/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/clock.h"
#include "correctness/call_check.h"
#include "correctness/draw_set.h"
#include "correctness/mutants.h"
#include "correctness/own_check.h"
#include "machine/seeds.h"
#include "rules/audit_findings.h"
#include "values/draw_kinds.h"
#include "values/oracle.h"

namespace assay {
namespace {

using wire::DrawKind;

// A mutant that one draw shows as clearly as this is not run on the others.
constexpr double kBeyondDoubt = 16;
constexpr int kOtherSeeds = 3;

class Audit {
 public:
  Audit(const AuditRequest& request,
        const std::function<void(const std::string&, double)>& progress)
      : request_(request), progress_(progress) {}

  // The audit without its error; errors become that.
  Result<void> Run(ProblemAudit* audit);

 private:
  Result<void> Open(ProblemAudit* audit);
  Result<void> MakeDraws(ProblemAudit* audit);
  HostResult<void> RunDraws(ProblemAudit* audit);
  HostResult<void> LookForMends(ProblemAudit* audit);
  HostResult<void> TryMend(const Mend& mend, uint64_t seed, ProblemAudit* audit);
  HostResult<CallCheck> Check(size_t mutant, uint32_t master, std::string_view kind);
  bool MasterIsMeaningful(uint32_t master);

  const AuditRequest& request_;
  const std::function<void(const std::string&, double)>& progress_;
  std::optional<Oracle> oracle_;
  std::optional<DrawSet> draws_;
  CompareRule rule_;
  MutantCatalog catalog_;
  std::vector<bool> counts_;   // one a mutant: false where what it does is allowed
  bool mending_ = false;       // gate 1's draws are done, further ones are tried
  std::vector<bool> changed_;  // one a mutant: it changed an output on a draw of gate 1
};

Result<void> Audit::Open(ProblemAudit* audit) {
  OracleOptions options;
  options.problem = request_.problem;
  options.python = request_.python;
  options.threads = request_.threads;
  options.weights_seed = DeriveSeed(request_.seed, SeedStream::kWeights);
  options.memory_bytes = request_.memory_bytes;
  options.stop = request_.stop;
  std::optional<wire::Failure> refusal;
  auto opened = Oracle::Open(std::move(options), &refusal);
  if (opened) {
    oracle_ = std::move(*opened);
  } else if (refusal == wire::Failure::kProblemRandom) {
    audit->findings.push_back(
        {"random-reference", "", opened.error().message, std::nullopt,
         "put the model into eval(), or take the random numbers as an input"});
  } else {
    return std::unexpected(opened.error());
  }
  return {};
}

Result<void> Audit::MakeDraws(ProblemAudit* audit) {
  ASSAY_ASSIGN_OR_RETURN(
      rule_, RuleFor(request_.problem, request_.precision, request_.tolerance, *oracle_));
  audit->required_class = PrecisionClassName(rule_.required);
  audit->tolerance = "error-ratio";
  if (rule_.allclose)
    audit->tolerance = request_.tolerance.empty() ? request_.problem.tolerance : request_.tolerance;
  if (oracle_->description().own_check) audit->tolerance = kByOwnCheck;
  ASSAY_ASSIGN_OR_RETURN(std::vector<DrawKind> skip, SkippedDraws(request_.problem));
  if (request_.ordinary_only)
    for (uint64_t kind = 1; kind < wire::kDrawKindCount; ++kind)
      skip.push_back(static_cast<DrawKind>(kind));
  auto made = DrawSet::Make(*oracle_, rule_, DeriveSeed(request_.seed, SeedStream::kDraws), skip,
                            [](size_t, size_t) {});
  if (made) {
    draws_ = std::move(*made);
    audit->draws = static_cast<int>(std::count_if(draws_->draws().begin(), draws_->draws().end(),
                                                  [](const Draw& draw) { return !draw.dropped; }));
    return {};
  }
  if (made.error().kind != HostTrouble::Kind::kFailed ||
      made.error().failure != wire::Failure::kProblemOutput)
    return std::unexpected(OracleError(made.error()));
  audit->findings.push_back({"meaningless-reference", "", made.error().message, std::nullopt, ""});
  return {};
}

HostResult<CallCheck> Audit::Check(size_t mutant, uint32_t master, std::string_view kind) {
  auto found = CheckMutant(*oracle_, mutant, master, kind, rule_, draws_->reference_errors());
  if (!found) return std::unexpected(found.error());
  if (found->changed && !mending_) changed_[mutant] = true;
  return std::move(found->check);
}

HostResult<void> Audit::RunDraws(ProblemAudit* audit) {
  std::vector<bool> beyond_doubt(audit->mutants.size());
  const auto& draws = draws_->draws();
  for (size_t i = 0; i < draws.size(); ++i) {
    progress_("mutants", static_cast<double>(i) / static_cast<double>(draws.size()));
    if (draws[i].dropped) continue;
    if (draws[i].kind == DrawKind::kSpecialValues && !rule_.special_values) continue;
    const auto master = draws_->Master(*oracle_, i);
    if (!master) return std::unexpected(master.error());
    for (size_t m = 0; m < audit->mutants.size(); ++m) {
      if (beyond_doubt[m] || !counts_[m]) continue;
      const auto check = Check(m, *master, DrawKindName(draws[i].kind));
      if (!check) return std::unexpected(check.error());
      MutantRecord& mutant = audit->mutants[m];
      if (check->error_ratio > mutant.margin || mutant.draw.empty()) {
        mutant.margin = check->error_ratio;
        mutant.draw = DrawKindName(draws[i].kind);
      }
      // Timed calls have such values in plenty.
      const bool ordinary =
          draws[i].kind == DrawKind::kOrdinary || draws[i].kind == DrawKind::kSigns;
      if (ordinary) mutant.ordinary_margin = std::max(mutant.ordinary_margin, check->error_ratio);
      if (check->passed) continue;
      mutant.result = MutantResult::kKilled;
      if (ordinary) mutant.passes_ordinary = false;
      beyond_doubt[m] = mutant.margin >= kBeyondDoubt;
    }
  }
  return {};
}

bool Audit::MasterIsMeaningful(uint32_t master) {
  if (oracle_->description().own_check) {
    const auto said = AskAboutReference(*oracle_, master);
    return said && !*said;
  }
  for (const OutputView& view : OutputViews(*oracle_, master, nullptr, !rule_.allclose)) {
    std::string reason;
    if (!DrawIsMeaningful(view, false, &reason)) return false;
  }
  return true;
}

HostResult<void> Audit::TryMend(const Mend& mend, uint64_t seed, ProblemAudit* audit) {
  const auto open = [&](size_t m) {
    const MutantRecord& mutant = audit->mutants[m];
    return counts_[m] && mutant.result == MutantResult::kSurvived && mutant.mend.empty();
  };
  bool any = false;
  for (size_t m = 0; m < audit->mutants.size(); ++m) any = any || open(m);
  if (!any) return {};
  // The draws of gate 1 are done with: their first slot serves.
  constexpr uint32_t kMaster = 0;
  const auto filled = oracle_->Fill(kMaster, seed, static_cast<DrawKind>(mend.kind), true);
  if (!filled) {
    if (filled.error().kind == HostTrouble::Kind::kFailed) return {};
    return std::unexpected(filled.error());
  }
  if (!MasterIsMeaningful(kMaster)) return {};
  for (size_t m = 0; m < audit->mutants.size(); ++m) {
    if (!open(m)) continue;
    const auto check = Check(m, kMaster, mend.kind == 0 ? "ordinary" : mend.words);
    if (!check) return std::unexpected(check.error());
    if (!check->passed) audit->mutants[m].mend = mend.words;
  }
  return {};
}

HostResult<void> Audit::LookForMends(ProblemAudit* audit) {
  mending_ = true;
  std::mt19937_64 random(DeriveSeed(request_.seed, SeedStream::kValues));
  std::vector<Mend> mends;
  // What gate 1 itself would draw, where it was told not to.
  for (const Draw& draw : draws_->draws())
    if (draw.dropped && draw.kind != DrawKind::kSpecialValues)
      mends.push_back({static_cast<uint64_t>(draw.kind),
                       fmt::format("inputs as in gate 1's draw '{}'", DrawKindName(draw.kind))});
  mends.insert(mends.end(), catalog_.mends.begin(), catalog_.mends.end());
  for (int i = 0; i < kOtherSeeds; ++i) mends.push_back({0, "inputs under another seed"});
  for (size_t i = 0; i < mends.size(); ++i) {
    progress_("further draws", static_cast<double>(i) / static_cast<double>(mends.size()));
    if (auto tried = TryMend(mends[i], random() >> 1, audit); !tried) return tried;
  }
  return {};
}

Result<void> Audit::Run(ProblemAudit* audit) {
  progress_("starting the reference", 0);
  ASSAY_RETURN_IF_ERROR(Open(audit));
  if (audit->degenerate()) return {};
  ASSAY_RETURN_IF_ERROR(MakeDraws(audit));
  if (audit->degenerate()) return {};
  const auto listed = [&]() -> Result<void> {
    const auto master = draws_->Master(*oracle_, 0);
    if (!master) return std::unexpected(OracleError(master.error()));
    const auto text = oracle_->ListMutants(*master, Oracle::Mutants::kAll);
    if (!text) return std::unexpected(OracleError(text.error()));
    // Integers that the problem's own check judges may differ, and be as right.
    const bool any_precision =
        rule_.allclose.has_value() ||
        (oracle_->description().own_check && rule_.required == PrecisionClass::kExact);
    ASSAY_ASSIGN_OR_RETURN(catalog_, ParseMutants(*text));
    for (const std::string& precision : catalog_.precisions)
      counts_.push_back(PrecisionCounts(precision, rule_.required, any_precision));
    return {};
  };
  ASSAY_RETURN_IF_ERROR(listed());
  audit->mutants = catalog_.mutants;
  audit->operators = catalog_.operators;
  audit->left_out = catalog_.left_out;
  changed_.resize(audit->mutants.size());
  if (auto run = RunDraws(audit); !run) return std::unexpected(OracleError(run.error()));
  if (auto looked = LookForMends(audit); !looked)
    return std::unexpected(OracleError(looked.error()));
  std::vector<MutantRecord> kept;
  for (size_t m = 0; m < audit->mutants.size(); ++m) {
    MutantRecord& mutant = audit->mutants[m];
    if (!counts_[m]) continue;
    if (mutant.result == MutantResult::kSurvived && !changed_[m] && mutant.mend.empty() &&
        MayBeEquivalent(mutant))
      mutant.result = MutantResult::kEquivalent;
    kept.push_back(std::move(mutant));
  }
  audit->mutants = std::move(kept);
  CoverOperators(audit->mutants, &audit->operators);
  const auto outputs = OutputViews(*oracle_, 0, nullptr, false).size();
  audit->findings = FindingsOf(audit->mutants, static_cast<int>(outputs));
  if (oracle_->description().same_values)
    audit->findings.push_back({"same-values", "", std::string(kSameValues), std::nullopt,
                               "draw them in get_inputs(), which must not set a seed"});
  return {};
}

}  // namespace

Result<ProblemAudit> AuditProblem(const AuditRequest& request,
                                  const std::function<void(const std::string&, double)>& progress) {
  const int64_t begin_ns = MonotonicNs();
  ProblemAudit audit;
  audit.problem = request.problem;
  const auto run = Audit(request, progress).Run(&audit);
  if (!run) {
    if (run.error().kind == ErrorKind::kInterrupted) return std::unexpected(run.error());
    audit.error = run.error().message;
    NameFiles(request.problem.path, "", &audit.error);
  }
  for (AuditFinding& finding : audit.findings) NameFiles(request.problem.path, "", &finding.detail);
  audit.seconds = static_cast<double>(MonotonicNs() - begin_ns) / 1e9;
  return audit;
}

}  // namespace assay
