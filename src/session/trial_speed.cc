// The speed gate of a trial.
#include <fmt/format.h>

#include <algorithm>

#include "base/defences.h"
#include "gpu/turns.h"
#include "hosts/blame.h"
#include "machine/meter.h"
#include "session/record.h"
#include "session/trial.h"
#include "speed/library_kernels.h"

namespace assay {
namespace {

// How much longer hosts take to start side by side than the oracle's does alone, at most.
constexpr double kSideBySideStart = 2;
// What starting a pair takes where neither side is native, to which its rounds are fitted [s].
constexpr double kSlowPairS = 0.4;

// Whether a look at what runs on a device is worth its time. A native candidate may load libraries
// that it does not link: that is for the problem to forbid.
bool MayCallLibraries(const BuiltCandidate& candidate, bool forbidden) {
  return candidate.source.form == CandidateForm::kPython || !candidate.toolkit.empty() || forbidden;
}

HostResult<void> AsTrouble(Result<void> done) {
  if (!done) return TroubleFrom(done.error());
  return {};
}

void AddSpent(const SpentTime& spent, Cost* cost) {
  cost->start_s += Seconds(spent.start_ns);
  cost->fill_s += Seconds(spent.fill_ns);
  cost->timed_s += Seconds(spent.timed_ns);
}

}  // namespace

Forms Trial::FormsBeside(const std::string& baseline) const {
  const Workbench& bench = setup_.bench;
  const CandidateForm form = setup_.candidate.source.form;
  Forms forms = FormsOf(
      form, setup_.against != nullptr ? std::optional(setup_.against->source.form) : std::nullopt,
      baseline, bench.terms.effort.replay, bench.on_device());
  if (bench.threads > 1 || form == CandidateForm::kPython) forms.step_wake_ns = kStepSlowWakeNs;
  forms.alone_ns = bench.on_device()   ? kAloneOnDeviceNs
                   : bench.threads > 1 ? kAloneThreadsNs
                                       : kAloneNs;
  return forms;
}

Terms Trial::TermsBeside(const std::string& baseline, bool cheap, const CandidateHosts& hosts,
                         const Verdict& verdict) const {
  const Workbench& bench = setup_.bench;
  Terms terms;
  const int opponents_there =
      setup_.against != nullptr ? kClearPairs : setup_.schedule.Pool({baseline, Queues()}).size();
  terms.clear_pairs = cheap ? std::clamp(opponents_there, kPairsMin, kClearPairs) : kPairsMin;
  terms.threshold = setup_.bar.threshold;
  terms.bound = setup_.bar.bound;
  terms.futility = bench.terms.effort.futility;
  terms.noise = bench.terms.machine.noise;
  // In the device form nothing but its own image runs.
  terms.libraries_forbidden = !bench.terms.problem.allow_libraries && Stands(Defence::kLibraries) &&
                              setup_.candidate.source.form != CandidateForm::kDevice;
  if (!cheap) terms.pair_s = kSlowPairS;
  if (bench.on_device()) terms.pair_s = kDevicePairS;
  terms.threads = bench.threads;
  terms.call_timeout_s = bench.terms.limits.call_timeout_s;
  // Workers that share a device wait for each other.
  terms.budget_s = bench.terms.effort.speed_budget_s * bench.terms.sharers;
  terms.started_before_s = std::min(hosts.BegunForS(), kSideBySideStart * bench.host_start_s);
  terms.candidate_call_ns = call_ns_;
  // Beside the first baseline alone.
  if (verdict.speed->baselines.empty()) terms.sustained_s = bench.terms.effort.sustained_s;
  terms.progress = [this](const PairsSoFar& sum) {
    setup_.progress(JudgeStage::kSpeed, "speed: " + PairsText(sum),
                    static_cast<double>(sum.pairs) / (sum.pairs + sum.coming));
  };
  terms.sustains = [this](bool is_candidate, double fraction) {
    setup_.progress(
        JudgeStage::kSustained,
        fmt::format("sustained speed: {}", is_candidate ? "candidate" : "the other side"),
        fraction);
  };
  return terms;
}

Result<Trial::SpeedOutcome> Trial::PassSpeed(CandidateHosts& hosts, const std::string& baseline,
                                             Verdict* verdict) {
  Workbench& bench = setup_.bench;
  HostSchedule& schedule = setup_.schedule;
  setup_.progress(JudgeStage::kSpeed, "starting hosts", 0);
  if (schedule.alone() || bench.live->MemoryIsShort()) schedule.ending().Await();
  const ReferenceKind kind{baseline, Queues()};
  schedule.EndWarmReferences(kind, 0);
  const BuiltCandidate* against = setup_.against;
  // Fresh native hosts are cheap, and so are reference hosts that earlier candidates needed.
  const auto is_native = [](const BuiltCandidate* built) {
    return built == nullptr || built->source.form != CandidateForm::kPython;
  };
  const bool cheap = !bench.on_device() && is_native(&setup_.candidate) && is_native(against);
  Gate2Setup gate{{*bench.oracle, *bench.live, setup_.batch.values, bench.rule, &setup_.batch.draws,
                   &bench.oracle_options},
                  {},
                  FormsBeside(baseline),
                  TermsBeside(baseline, cheap, hosts, *verdict)};
  std::optional<CandidateHosts> opponents;
  if (against != nullptr) opponents.emplace(schedule.SetupOf(*against, kind.queues));
  const std::shared_ptr<GpuTurns> turns = GpuTurns::Of(bench.gpu());
  // Other judges may measure while a host imports PyTorch, or makes a model for each slot.
  const auto host_starts = [&] {
    return turns ? AsTrouble(turns->ShareAgain(bench.stop)) : HostResult<void>{};
  };
  if (turns) gate.sides.measure_alone = [&] { return AsTrouble(turns->Measure(bench.stop)); };
  gate.sides.opponent = [&](int pair_index) -> HostResult<Opponent> {
    Opponent found;
    const int coming = schedule.PairsComing(pair_index);
    if (opponents ? opponents->TakesLong() : schedule.Pool(kind).TakesLong(pair_index))
      if (auto shared = host_starts(); !shared) return std::unexpected(shared.error());
    if (opponents) {
      auto own = opponents->Take(pair_index, coming);
      if (!own) return std::unexpected(own.error());
      found.own = std::move(*own);
      return found;
    }
    auto host = schedule.Pool(kind).Get(pair_index, coming, gate.forms.opponent_leaves);
    if (!host) return std::unexpected(host.error());
    found.warm = *host;
    return found;
  };
  gate.sides.candidate = [&](int pair_index) -> HostResult<LiveHost> {
    if (hosts.TakesLong())
      if (auto shared = host_starts(); !shared) return std::unexpected(shared.error());
    return hosts.Take(pair_index, schedule.PairsComing(pair_index));
  };
  if (bench.on_device() && against == nullptr)
    gate.sides.begin_hosts = [&](int pair_index) -> HostResult<void> {
      if (hosts.TakesLong())
        if (auto shared = host_starts(); !shared) return shared;
      return schedule.BeginPairs(pair_index, hosts, kind, gate.forms.opponent_leaves);
    };
  // So one turn to measure holds for all of them.
  if (bench.on_device() && against == nullptr && !schedule.alone())
    gate.sides.start_first = [&] { schedule.StartPairs(hosts, kind, gate.forms.opponent_leaves); };
  if (bench.on_device()) gate.sides.ending = &schedule.ending();
  std::optional<OwnKernels> own_kernels;
  if (bench.on_device() && MayCallLibraries(setup_.candidate, gate.terms.libraries_forbidden))
    gate.terms.own_kernels = &own_kernels.emplace(setup_.candidate);
  auto result = RunGate2(gate);
  if (turns) ASSAY_RETURN_IF_ERROR(turns->ShareAgain(bench.stop));
  if (!result && result.error().of_opponent) return SpeedOutcome{false, result.error()};
  if (!result) {
    ASSAY_RETURN_IF_ERROR(Blame(result.error(), "gate 2", bench.stop, verdict));
    return SpeedOutcome{true, std::nullopt};
  }
  // It may have been about to ask what else explains that.
  if (result->checks.wrong && bench.stop.stopped())
    return Fail(ErrorKind::kInterrupted, "interrupted");
  if (result->checks.wrong && result->checks.wrong->trouble)
    return std::unexpected(TroubleAsError(*result->checks.wrong->trouble, "gate 2"));
  AddSpent(result->spent, &verdict->cost);
  // Hosts of pairs to come have taken memory only now: CUDA starts in them after gate 1.
  wants_room_ = result->checks.wrong && result->checks.wrong->lacked_memory;
  if (auto& why = result->result.why_unsettled) why->budget_s /= bench.terms.sharers;
  return SpeedOutcome{ConcludeGate2(std::move(*result), bench.terms.problem, baseline, verdict),
                      std::nullopt};
}

Result<bool> Trial::PassBaselines(CandidateHosts& hosts, Verdict* verdict) {
  const SessionTerms& terms = setup_.bench.terms;
  const std::vector<std::string> baselines =
      setup_.against != nullptr ? std::vector<std::string>{"against"} : terms.opponent.baselines;
  const bool best = terms.opponent.best_baseline && setup_.against == nullptr;
  verdict->speed->headline = best ? kBestBaseline : baselines.front();
  std::map<std::string, std::vector<std::string>> left_out;  // by why
  for (const std::string& baseline : baselines) {
    ASSAY_ASSIGN_OR_RETURN(const SpeedOutcome outcome, PassSpeed(hosts, baseline, verdict));
    hosts.Drop();
    if (!outcome.opponent_trouble) {
      if (outcome.final) return true;
      continue;
    }
    const Error error = TroubleAsError(*outcome.opponent_trouble, "the baseline failed");
    // A candidate that had all of the device's memory would choose its baseline.
    const bool leaves_out = best && baseline != baselines.front() &&
                            error.kind != ErrorKind::kInterrupted &&
                            !setup_.bench.live->MemoryTaken();
    if (!leaves_out) return std::unexpected(error);
    left_out[error.message.substr(0, error.message.find('\n'))].push_back(baseline);
    setup_.schedule.DropPool({baseline, Queues()});
  }
  if (best) AddBest(left_out, &*verdict->speed);
  return false;
}

}  // namespace assay
