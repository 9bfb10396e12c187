#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/defences.h"
#include "hosts/blame.h"
#include "machine/meter.h"
#include "machine/seeds.h"
#include "session/judgement.h"
#include "session/record.h"
#include "speed/library_kernels.h"

namespace assay {
SizeRunTerms Judgement::Terms() {
  return {tolerance_,
          request_.limits.call_timeout_s,
          WeightsTreatment(request_.problem) == "constructed",
          events_.stop,
          device_ ? &ending_ : nullptr,
          [this](const std::string& stage, double fraction) { Progress(stage, fraction); }};
}

void Judgement::SayWhatFailed(const Gate1Result& result, Verdict* verdict) {
  wants_room_ = result.lacked_memory || result.could_not_ask;
  verdict->outcome = result.lacked_memory ? Outcome::kOutOfMemory : Outcome::kWrong;
  verdict->message = (result.lacked_memory ? "" : "wrong: ") + verdict->correctness->hint;
}

Result<bool> Judgement::PassGate1(const BuiltCandidate& candidate, HostsOf& hosts,
                                  Verdict* verdict) {
  const AtSize size{*oracle_, oracle_options_, *live_, *draws_, rule_, hosts.gate1, ""};
  ASSAY_ASSIGN_OR_RETURN(auto result, RunAtSize(size, Terms(), verdict));
  if (!result) return true;
  verdict->correctness = std::move(result->correctness);
  if (candidate.source.form == CandidateForm::kPython) {
    std::string& note = verdict->correctness->note;
    const std::string constants = ConstantsNote(candidate.source.content, request_.problem.set);
    if (!constants.empty()) note += (note.empty() ? "" : "; ") + constants;
  }
  candidate_call_ns_ = result->call_ns;
  if (verdict->correctness->passed) return false;
  SayWhatFailed(*result, verdict);
  return true;
}

Result<bool> Judgement::PassOtherSize(HostsOf& hosts, Verdict* verdict) {
  if (starts_alone_) ending_.Await();  // gate 1's
  OtherSize& other = *other_size_;
  const std::string where = " at " + other.text;
  const AtSize size{other.oracle, other.options,     other.live, other.draws,
                    other.rule,   *hosts.other_size, where};
  ASSAY_ASSIGN_OR_RETURN(auto result, RunAtSize(size, Terms(), verdict));
  if (!result) return true;
  Correctness& correctness = *verdict->correctness;
  AddDraws(std::move(result->correctness), other.options.problem.set, &correctness);
  if (correctness.passed) return false;
  correctness.hint =
      fmt::format("right at the size that was asked for, but{}: {}", where, correctness.hint);
  SayWhatFailed(*result, verdict);
  return true;
}

ReferencePool& Judgement::Pool(const std::string& baseline) {
  auto& pool = pools_[baseline];
  if (!pool) {
    ReferencePool::Options options;
    options.problem = request_.problem;
    options.python = python_;
    options.threads = threads_;
    options.weights_seed = DeriveSeed(seed_, SeedStream::kWeights);
    options.baseline = baseline;
    options.hosts_max = ReferencePool::WarmHostsMax();
    options.gpu = gpu();
    options.stop = events_.stop;
    pool = std::make_unique<ReferencePool>(std::move(options));
    if (live_) pool->Meet(*oracle_, *live_);
  }
  return *pool;
}

namespace {

// How much longer hosts take to start side by side than the oracle's does alone, at most.
constexpr double kSideBySideStart = 2;

// Whether a look at what runs on a device is worth its time. A native candidate may load libraries
// that it does not link: that is for the problem to forbid.
bool MayCallLibraries(const BuiltCandidate& candidate, bool forbidden) {
  return candidate.source.form == CandidateForm::kPython || !candidate.toolkit.empty() || forbidden;
}

void AddSpent(const SpentTime& spent, Cost* cost) {
  cost->start_s += Seconds(spent.start_ns);
  cost->fill_s += Seconds(spent.fill_ns);
  cost->timed_s += Seconds(spent.timed_ns);
}

}  // namespace

void Judgement::ShowProgress(Gate2Setup* setup) const {
  setup->progress = [this](int pairs, const SpeedEstimate& estimate) {
    Progress(fmt::format("speed (gate 2): pair {}, {:.3g}x so far", pairs, estimate.speedup),
             std::min(1.0, static_cast<double>(pairs) / 9));
  };
  setup->sustains = [this](bool is_candidate, double fraction) {
    Progress(fmt::format("sustained speed: {}", is_candidate ? "candidate" : "the other side"),
             fraction);
  };
}

int Judgement::PairsComing(int pair_index) const {
  return starts_alone_ ? 1 : PairsUntilDecision(pair_index);
}

void Judgement::EndWarmReferences(const std::string& baseline, int pair_index) {
  if (!starts_alone_) return;
  std::erase_if(pools_, [&](const auto& pool) { return pool.first != baseline; });
  if (const auto pool = pools_.find(baseline); pool != pools_.end())
    pool->second->KeepOnly(pair_index);
}

HostResult<void> Judgement::BeginPairs(int pair_index, CandidateHosts& hosts,
                                       const std::string& baseline, bool opponent_leaves) {
  EndWarmReferences(baseline, pair_index);
  if (starts_alone_) return {};
  for (auto& [other, pool] : pools_)
    if (other != baseline) pool->MakeRoom(0);
  const int coming = PairsComing(pair_index);
  hosts.Prefetch(pair_index, coming);
  return Pool(baseline).Prefetch(pair_index, coming, opponent_leaves);
}

Result<bool> Judgement::PassGate2(const BuiltCandidate& candidate, CandidateHosts& hosts,
                                  const std::string& baseline, Verdict* verdict) {
  Progress("starting hosts", 0);
  if (starts_alone_ || live_->MemoryIsShort()) ending_.Await();
  EndWarmReferences(baseline, 0);
  Gate2Setup setup{*oracle_, *live_, *values_};
  std::optional<CandidateHosts> opponents;
  if (against_) opponents.emplace(HostSetup(*against_));
  const auto opponent = [&](int pair_index) -> HostResult<Opponent> {
    Opponent found;
    if (opponents) {
      auto own = opponents->Take(pair_index, PairsComing(pair_index));
      if (!own) return std::unexpected(own.error());
      found.own = std::move(*own);
      return found;
    }
    auto host = Pool(baseline).Get(pair_index, PairsComing(pair_index), setup.opponent_leaves);
    if (!host) return std::unexpected(host.error());
    found.warm = *host;
    return found;
  };
  // Fresh native hosts are cheap, and so are reference hosts that earlier candidates needed.
  const bool cheap = device_ == nullptr && candidate.source.form != CandidateForm::kPython &&
                     (!against_ || against_->source.form != CandidateForm::kPython);
  const int opponents_there = against_ ? kClearPairs : Pool(baseline).size();
  const int clear_pairs = cheap ? std::clamp(opponents_there, kPairsMin, kClearPairs) : kPairsMin;
  setup.rule = rule_;
  setup.errors = draws_->reference_errors();
  setup.options = &oracle_options_;
  setup.opponent = opponent;
  setup.candidate = [&](int pair_index) { return hosts.Take(pair_index, PairsComing(pair_index)); };
  if (device_ && !against_)
    setup.begin_hosts = [&](int pair_index) {
      return BeginPairs(pair_index, hosts, baseline, setup.opponent_leaves);
    };
  if (threads_ > 1 || candidate.source.form == CandidateForm::kPython)
    setup.step_wake_ns = setup.kept_wake_ns = kStepSlowWakeNs;
  if (device_) setup.kept_wake_ns = kKeptOnDeviceNs;
  setup.beside_baseline = device_ != nullptr;
  setup.SetForms(candidate.source.form,
                 against_ ? std::optional(against_->source.form) : std::nullopt, baseline,
                 request_.replay);
  setup.clear_pairs = clear_pairs;
  setup.threshold = request_.threshold;
  // In the device form nothing but its own image runs.
  setup.libraries_forbidden = !request_.problem.allow_libraries && Stands(Defence::kLibraries) &&
                              candidate.source.form != CandidateForm::kDevice;
  std::optional<OwnKernels> own_kernels;
  if (device_ && MayCallLibraries(candidate, setup.libraries_forbidden))
    setup.own_kernels = &own_kernels.emplace(candidate);
  setup.noise = request_.machine.noise;
  setup.threads = threads_;
  setup.call_timeout_s = request_.limits.call_timeout_s;
  if (!cheap) setup.pair_s = 0.4;  // a second goes into starting such a pair
  if (device_) {
    setup.pair_s = kDevicePairS;
    setup.ending = &ending_;
  }
  setup.budget_s = request_.speed_budget_s;
  setup.started_before_s = std::min(hosts.BegunForS(), kSideBySideStart * host_start_s_);
  setup.candidate_call_ns = candidate_call_ns_;
  // Beside the first baseline alone.
  if (verdict->speed->baselines.empty()) setup.sustained_s = request_.sustained_s;
  ShowProgress(&setup);
  baseline_failed_ = false;
  auto result = RunGate2(setup);
  if (!result) {
    ASSAY_RETURN_IF_ERROR(Blame(result.error(), "gate 2", events_.stop, verdict));
    return true;
  }
  // It may have been about to ask what else explains that.
  if (result->wrong && events_.stop.stopped()) return Fail(ErrorKind::kInterrupted, "interrupted");
  AddSpent(result->spent, &verdict->cost);
  if (result->opponent_trouble) {
    baseline_failed_ = true;
    return std::unexpected(TroubleAsError(*result->opponent_trouble, "the baseline failed"));
  }
  return ConcludeGate2(std::move(*result), request_.problem, baseline, verdict);
}

Result<bool> Judgement::PassBaselines(const BuiltCandidate& candidate, CandidateHosts& hosts,
                                      Verdict* verdict) {
  const std::vector<std::string> baselines =
      against_ ? std::vector<std::string>{"against"} : request_.baselines;
  const bool best = request_.best_baseline && !against_;
  verdict->speed->headline = best ? kBestBaseline : baselines.front();
  std::map<std::string, std::vector<std::string>> left_out;  // by why
  for (const std::string& baseline : baselines) {
    auto final = PassGate2(candidate, hosts, baseline, verdict);
    hosts.Drop();
    // A candidate that had all of the device's memory would choose its baseline.
    const bool leaves_out = !final && best && baseline != baselines.front() && baseline_failed_ &&
                            final.error().kind != ErrorKind::kInterrupted && !live_->MemoryTaken();
    if (leaves_out) {
      const std::string& why = final.error().message;
      left_out[why.substr(0, why.find('\n'))].push_back(baseline);
      pools_.erase(baseline);
      continue;
    }
    if (!final || *final) return final;
  }
  if (best) AddBest(left_out, &*verdict->speed);
  return false;
}

// The headline baseline decides the outcome.
void Judgement::Settle(Verdict* verdict) const {
  Speed& speed = *verdict->speed;
  const BaselineResult& headline = speed.baselines.at(speed.headline);
  const auto outcome = OutcomeFromName(headline.decision);
  ASSAY_CHECK(outcome.has_value());
  verdict->outcome = *outcome;
  speed.passed = *outcome == Outcome::kFaster;
  const std::string opponent = against_                          ? against_->source.path
                               : speed.headline == kBestBaseline ? "the best baseline"
                                                                 : speed.headline;
  if (verdict->message.empty()) verdict->message = OutcomeMessage(*outcome, speed, opponent);
}

}  // namespace assay
