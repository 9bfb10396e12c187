#include "pipeline/rounding.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/trace.h"
#include "judge/moved_rows.h"
#include "pipeline/draw_kinds.h"

namespace assay {
namespace {

// The second reference's slots: it fills one at a time.
constexpr uint32_t kSlots = 2;

HostResult<Oracle> OpenSecond(OracleOptions options) {
  options.other_set.clear();
  options.slots_most = kSlots;
  auto opened = Oracle::Open(std::move(options));
  if (opened) return std::move(*opened);
  const bool interrupted = opened.error().kind == ErrorKind::kInterrupted;
  return HostFailed(interrupted ? HostTrouble::Kind::kInterrupted : HostTrouble::Kind::kEnvironment,
                    opened.error().message);
}

bool SameInputs(const Oracle& known, uint32_t master, const Oracle& second) {
  const wire::Plan& plan = known.plan();
  if (second.plan().argument_count != plan.argument_count) return false;
  const std::byte* ours = known.inputs(master);
  const std::byte* theirs = second.inputs(0);
  return std::all_of(plan.arguments, plan.arguments + plan.argument_count,
                     [&](const wire::ArgumentSpec& a) {
                       return a.role != wire::Role::kInput ||
                              std::memcmp(ours + a.offset, theirs + a.offset, a.size_bytes) == 0;
                     });
}

// One output that failed.
struct Doubt {
  size_t output;
  std::vector<double> truth;  // the second reference's
};

class Rounding {
 public:
  Rounding(const CompareRule& rule, std::vector<OutputView> views)
      : rule_(rule), views_(std::move(views)), moved_(views_.size()) {}

  // False: one output is wrong in a way that is not rounding's.
  bool FindDoubts() {
    for (size_t i = 0; i < views_.size(); ++i) {
      if (CompareWithOracle(views_[i], rule_, nullptr).passed) continue;
      moved_[i] = DoubtfulRows(views_[i], rule_);
      if (moved_[i].empty()) return false;
      doubts_.push_back({i, {}});
    }
    return !doubts_.empty();
  }
  void KeepTruth(const Oracle& second) {
    for (Doubt& doubt : doubts_) {
      const double* truth = Truth(second, doubt.output);
      doubt.truth.assign(truth, truth + views_[doubt.output].count);
    }
  }
  void SeeNudged(const Oracle& second) {
    for (const Doubt& doubt : doubts_)
      SeeMoved(doubt.truth.data(), Truth(second, doubt.output), moved_[doubt.output]);
  }
  bool Explains() const {
    return std::all_of(doubts_.begin(), doubts_.end(), [this](const Doubt& doubt) {
      int64_t left_out = 0;
      const auto rest =
          CompareBesideMoved(views_[doubt.output], rule_, moved_[doubt.output], &left_out);
      return rest && rest->passed;
    });
  }
  std::vector<std::vector<MovedRow>> TakeMoved() { return std::move(moved_); }

 private:
  static const double* Truth(const Oracle& second, size_t output) {
    return OutputViews(second, 0, nullptr, true)[output].oracle;
  }

  const CompareRule& rule_;
  std::vector<OutputView> views_;
  std::vector<std::vector<MovedRow>> moved_;  // one list an output
  std::vector<Doubt> doubts_;
};

}  // namespace

HostResult<bool> LookForRounding(OracleOptions options, const CompareRule& rule, const Draw& draw,
                                 uint32_t master, const std::byte* written, Oracle* known) {
  if (!MayBeRounding(draw.kind)) return false;
  Rounding rounding(rule, OutputViews(*known, master, written, true));
  if (!rounding.FindDoubts()) return false;
  const Span span("look for rounding");
  auto second = OpenSecond(std::move(options));
  if (!second) return std::unexpected(second.error());
  second->ShowWeights(draw.seed);
  if (auto filled = second->Fill(0, draw.seed, draw.kind, true); !filled)
    return std::unexpected(filled.error());
  if (!SameInputs(*known, master, *second))
    return HostFailed(HostTrouble::Kind::kEnvironment,
                      "a second reference draws other inputs under the same seed");
  rounding.KeepTruth(*second);
  const int bits = NudgeBits(std::max(rule.required, FinestClass(known->plan())));
  bool explains = false;
  for (int nudge = 1; nudge <= kNudges && !explains; ++nudge) {
    const Oracle::Nudge how{static_cast<uint64_t>(nudge), bits};
    if (auto filled = second->FillNudged(0, draw.seed, draw.kind, how); !filled)
      return std::unexpected(filled.error());
    rounding.SeeNudged(*second);
    explains = rounding.Explains();
  }
  if (explains) known->SetMoved(master, rounding.TakeMoved());
  return explains;
}

}  // namespace assay
