#include "session/judge.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/trace.h"
#include "builders/kernel_records.h"
#include "hosts/blame.h"
#include "machine/machine.h"
#include "machine/meter.h"
#include "machine/seeds.h"
#include "machine/side_by_side.h"
#include "rules/bottleneck.h"
#include "session/judgement.h"
#include "session/late_build.h"
#include "session/record.h"
#include "values/draw_kinds.h"
#include "values/work_account.h"

namespace assay {
namespace {

// Where cores are plentiful opponents import PyTorch while the oracle does, and so do hosts of
// several candidates to come.
constexpr size_t kManyCores = 12;
constexpr size_t kAheadMax = 4;
// Master slots where nothing is timed: the draws of gate 1 take half of them at most.
constexpr uint32_t kSlotsOfDraws = 32;

void AddTotals(double judged_s, Cost* cost) {
  cost->total_s = cost->build_s + judged_s;
  cost->overhead_s = std::max(0.0, judged_s - cost->start_s - cost->fill_s - cost->timed_s);
}

using Builds = SideBySide<CandidateSource, Result<BuiltCandidate>>;

}  // namespace

Result<void> Judgement::Prepare() {
  seed_ = request_.seed != 0 ? request_.seed : FreshSeed();
  const bool on_device = request_.problem.device == "cuda";
  threads_ = request_.threads > 0 ? request_.threads : DefaultThreads(on_device);
  if (threads_ > static_cast<int>(UsableCpus().size()))
    return UsageError(
        fmt::format("--threads {} asks for more than the {} cores that this process may use",
                    threads_, UsableCpus().size()));
  const uint64_t weights_seed = DeriveSeed(seed_, SeedStream::kWeights);
  settings_ = HostSettings(request_.problem, threads_, weights_seed, "eager");
  OracleOptions options;
  options.problem = request_.problem;
  options.python = python_;
  options.threads = threads_;
  options.weights_seed = weights_seed;
  options.memory_bytes = AvailableMemoryBytes() / 4 * 3;
  if (request_.correctness_only) options.slots_most = kSlotsOfDraws;
  options.stop = events_.stop;
  const uint64_t other_seed = DeriveSeed(seed_, SeedStream::kOtherSize);
  options.other_set = DrawSizes(request_.problem, other_seed);
  if (on_device) {
    ASSAY_ASSIGN_OR_RETURN(device_, JudgeDevice::Open(events_.stop));
    options.device = device_.get();
    options.memory_bytes = device_->BytesForValues();
  }
  Progress("starting the reference", 0);
  const int64_t starting_ns = MonotonicNs();
  ASSAY_ASSIGN_OR_RETURN(std::shared_ptr<Host> host, StartOracleHost(options));
  host_start_s_ = Seconds(MonotonicNs() - starting_ns);
  if (device_ && UsableCpus().size() >= kManyCores) ASSAY_RETURN_IF_ERROR(BeginOpponents());
  const auto rule_for = [this](const Oracle& oracle) {
    return RuleFor(request_.problem, request_.precision, request_.tolerance,
                   FinestClass(oracle.plan()));
  };
  const auto drawing = [&](size_t done, size_t all) {
    Progress("drawing inputs", static_cast<double>(done) / static_cast<double>(all));
  };
  ASSAY_ASSIGN_OR_RETURN(
      other_size_, MakeOtherSize(options, host, device_.get(), rule_for, other_seed, drawing));
  oracle_options_ = options;
  ASSAY_ASSIGN_OR_RETURN(oracle_, Oracle::Open(std::move(options), std::move(host)));
  ASSAY_ASSIGN_OR_RETURN(rule_, rule_for(*oracle_));
  tolerance_ = rule_.allclose
                   ? (request_.tolerance.empty() ? request_.problem.tolerance : request_.tolerance)
                   : "error-ratio";
  ASSAY_ASSIGN_OR_RETURN(live_, LiveSlots::Create(*oracle_, device_.get()));
  for (auto& [baseline, pool] : pools_) pool->Meet(*oracle_, *live_);
  ASSAY_RETURN_IF_ERROR(BeginOpponents());
  ASSAY_ASSIGN_OR_RETURN(const std::vector<wire::DrawKind> skip, SkippedDraws(request_.problem));
  auto draws = DrawSet::Make(*oracle_, rule_, DeriveSeed(seed_, SeedStream::kDraws), skip, drawing);
  if (!draws) return std::unexpected(TroubleAsError(draws.error(), request_.problem.path));
  draws_ = std::move(*draws);
  const uint32_t first = draws_->slots_used();
  if (oracle_->slots_max() < first + 2)
    return UsageError(
        "this problem is too large for the machine's memory, which must hold several sets of its "
        "tensors: lower its sizes with --set");
  values_.emplace(*oracle_, first, ValuePool::CapacityFor(*oracle_, first),
                  DeriveSeed(seed_, SeedStream::kValues), draws_->Kept());
  return {};
}

Result<void> Judgement::BeginOpponents() {
  if (request_.against || request_.correctness_only) return {};
  if (auto begun = Pool(request_.baselines.front()).Prefetch(0, kPairsMin, false); !begun)
    return std::unexpected(TroubleAsError(begun.error(), "starting the reference"));
  return {};
}

Result<void> Judgement::Build() {
  ASSAY_RETURN_IF_ERROR(RequireSandbox());
  ASSAY_ASSIGN_OR_RETURN(python_, FindPython(request_.python));
  const auto sources = [this](bool alone) {
    std::vector<const CandidateSource*> found;
    for (size_t i = 0; i < request_.candidates.size(); ++i)
      if (BuildsAlone(request_.candidates[i]) == alone && SameAs(i) == i)
        found.push_back(&request_.candidates[i]);
    if (request_.against && BuildsAlone(*request_.against) == alone)
      found.push_back(&*request_.against);
    return found;
  };
  // These compile while the reference's PyTorch is imported.
  Builds early_builds(sources(true), [this](const CandidateSource& source) {
    return BuildCandidate(source, request_.limits, python_, "", "", events_.stop);
  });
  ASSAY_RETURN_IF_ERROR(Prepare());
  const std::vector<const CandidateSource*> late = sources(false);
  const bool any_python = std::any_of(late.begin(), late.end(), [](const CandidateSource* source) {
    return source->form == CandidateForm::kPython;
  });
  if (any_python && oracle_->init_arguments().empty())
    return UsageError(
        "what the problem's get_init_inputs() returns cannot be handed to a candidate in Python: "
        "it cannot be pickled, is of a class of the problem's own, or takes more than 64 MiB");
  const LateBuildSetup setup{request_, python_,   *oracle_,    other_size_.get(),
                             gpu(),    settings_, events_.stop};
  // An opponent is timed at one size alone.
  LateBuildSetup of_opponent = setup;
  of_opponent.other_size = nullptr;
  Builds late_builds(late, [&](const CandidateSource& source) {
    const bool is_opponent = request_.against && &source == &*request_.against;
    return BuildLate(source, is_opponent ? of_opponent : setup);
  });
  size_t next_early = 0, next_late = 0;
  const auto take = [&](const CandidateSource& source) {
    return BuildsAlone(source) ? early_builds.Take(next_early++) : late_builds.Take(next_late++);
  };
  // All builds end before anything is timed: a compiler beside a measurement would be noise.
  for (size_t i = 0; i < request_.candidates.size(); ++i) {
    Progress(fmt::format("compiling {} of {}", i + 1, request_.candidates.size()),
             static_cast<double>(i) / static_cast<double>(request_.candidates.size()));
    if (const size_t same = SameAs(i); same != i) {
      built_.push_back(built_[same]);
      built_.back().cached = true;
      built_.back().build_s = 0;
      continue;
    }
    ASSAY_ASSIGN_OR_RETURN(BuiltCandidate candidate, take(request_.candidates[i]));
    built_.push_back(std::move(candidate));
  }
  if (request_.against) {
    ASSAY_ASSIGN_OR_RETURN(against_, take(*request_.against));
    if (device_ && MayHaveLackedMemory(*against_)) {
      ASSAY_ASSIGN_OR_RETURN(against_, BuildLate(*request_.against, of_opponent));
    }
    if (against_->failure)
      return UsageError(fmt::format("--against {} does not build: {}", request_.against->path,
                                    *against_->failure));
  }
  for (size_t i = 0; i < built_.size(); ++i)
    if (device_ && late.size() > 1 && MayHaveLackedMemory(built_[i])) {
      ASSAY_ASSIGN_OR_RETURN(built_[i], BuildLate(request_.candidates[i], setup));
    }
  return {};
}

Result<void> Judgement::Run() {
  ASSAY_RETURN_IF_ERROR(Build());
  BeginListings();
  for (size_t i = 0; i < built_.size(); ++i) {
    if (built_.size() > 1) label_ = fmt::format(" [{}/{}]", i + 1, built_.size());
    const int64_t begin_ns = MonotonicNs();
    auto verdict = JudgeWithRoom(i);
    if (!verdict || live_->MemoryIsShort()) ending_.Await();  // what it held comes back
    if (!verdict && !(verdict = ForWantOfMemory(i, verdict.error()))) {
      // Where the device hangs, whoever waited for it has failed.
      if (device_ && verdict.error().kind != ErrorKind::kInterrupted)
        ASSAY_RETURN_IF_ERROR(
            device_->CheckAnswers(fmt::format("{} was judged", built_[i].source.path)));
      return std::unexpected(verdict.error());
    }
    AddTotals(Seconds(MonotonicNs() - begin_ns), &verdict->cost);
    const auto answers = AddToolFacts(i, &*verdict);
    built_[i].artifact.clear();
    events_.verdict(*verdict);
    ASSAY_RETURN_IF_ERROR(answers);
    // The verdict stood before its run without pauses was interrupted.
    if (request_.sustained_s > 0 && verdict->speed && !verdict->sustained && events_.stop.stopped())
      return Fail(ErrorKind::kInterrupted, "interrupted");
    ASSAY_RETURN_IF_ERROR(CheckDevice(*verdict));
  }
  return {};
}

size_t Judgement::SameAs(size_t index) const {
  const CandidateSource& source = request_.candidates[index];
  for (size_t i = 0; i < index; ++i)
    if (request_.candidates[i].path == source.path && request_.candidates[i].hash == source.hash)
      return i;
  return index;
}

void Judgement::BeginListings() {
  if (!device_) return;
  std::vector<const std::string*> artifacts;
  for (const BuiltCandidate& candidate : built_) artifacts.push_back(&candidate.artifact);
  listings_ = std::make_unique<Listings>(std::move(artifacts), [this](const std::string& artifact) {
    return Disassemble(artifact, events_.stop);
  });
}

Result<void> Judgement::AddKernels(size_t index, Verdict* verdict) {
  if (!listings_) return {};
  BuiltCandidate& candidate = built_[index];
  if (listings_->Holds(index)) {
    ASSAY_ASSIGN_OR_RETURN(candidate.instructions, listings_->Take(index));
  }
  verdict->kernels = KernelRecordsOf(candidate, gpu()->facts());
  return {};
}

Result<void> Judgement::CheckDevice(const Verdict& verdict) {
  const bool trouble =
      verdict.outcome == Outcome::kCrashed || verdict.outcome == Outcome::kTimedOut ||
      verdict.outcome == Outcome::kOutOfMemory || verdict.outcome == Outcome::kFoul;
  if (!device_ || !trouble) return {};
  ending_.Await();
  return device_->CheckAnswers(fmt::format("{} was ended", verdict.candidate.path));
}

Result<Verdict> Judgement::ForWantOfMemory(size_t index, const Error& error) {
  const auto seen = MemoryTaken();
  if (!seen || error.kind == ErrorKind::kInterrupted) return std::unexpected(error);
  Verdict verdict = NewVerdict(request_, built_[index], *oracle_, python_, seed_, threads_, gpu());
  verdict.outcome = Outcome::kOutOfMemory;
  verdict.message = *seen;
  verdict.log = error.message;
  pools_.clear();  // hosts that failed, or that have half of what they need
  hosts_ahead_.clear();
  ASSAY_RETURN_IF_ERROR(AddKernels(index, &verdict));
  return verdict;
}

CandidateHostSetup Judgement::HostSetup(const BuiltCandidate& candidate) const {
  return {candidate, request_.limits, python_,  *oracle_,    *live_,
          settings_, gpu(),           threads_, events_.stop};
}

std::unique_ptr<Judgement::HostsOf> Judgement::MakeHosts(const BuiltCandidate& candidate) const {
  const CandidateHostSetup setup = HostSetup(candidate);
  auto hosts =
      std::make_unique<HostsOf>(CandidateHosts(setup), CandidateHosts(setup), std::nullopt);
  if (other_size_)
    hosts->other_size.emplace(
        CandidateHostSetup{candidate.at_other_size ? *candidate.at_other_size : candidate,
                           request_.limits, python_, other_size_->oracle, other_size_->live,
                           other_size_->settings, gpu(), threads_, events_.stop});
  return hosts;
}

// Importing PyTorch takes a second of one core, and every candidate needs gate 1: while one imports
// it, so do those that follow, on other cores.
std::unique_ptr<Judgement::HostsOf> Judgement::BeginHosts(size_t index) {
  auto begun = hosts_ahead_.extract(index);
  auto hosts = begun ? std::move(begun.mapped()) : MakeHosts(built_[index]);
  hosts->gate1.Prefetch(0, 1);
  if (starts_alone_) return hosts;
  // CUDA starts in every host, on a core of its own where there are some.
  if (device_ && hosts->other_size) hosts->other_size->Prefetch(0, 1);
  if (device_ && !request_.correctness_only && expects_gate2_) hosts->pairs.Prefetch(0, kPairsMin);
  const bool imports = built_[index].source.form == CandidateForm::kPython;
  const bool many = device_ && imports && UsableCpus().size() >= kManyCores;
  for (size_t ahead = 1; ahead <= (many ? kAheadMax : 1); ++ahead) {
    const size_t next = index + ahead;
    if (next >= built_.size() || built_[next].failure || hosts_ahead_.contains(next)) continue;
    auto made = MakeHosts(built_[next]);
    made->gate1.Prefetch(static_cast<int>(ahead), 1);
    if (device_ && made->other_size) made->other_size->Prefetch(static_cast<int>(ahead), 1);
    hosts_ahead_.emplace(next, std::move(made));
  }
  return hosts;
}

void Judgement::EndWaitingHosts() {
  pools_.clear();
  hosts_ahead_.clear();
  ending_.Await();
}

bool Judgement::HoldsFewHosts() {
  if (!device_ || !live_->MemoryHoldsFewHosts()) return false;
  EndWaitingHosts();
  return live_->MemoryHoldsFewHosts();
}

bool Judgement::LackedMemoryEarly(const Error& error) {
  if (expects_gate2_ || error.kind != ErrorKind::kEnvironment || !MayLackMemory(error.message))
    return false;
  ending_.Await();
  return !MemoryTaken();
}

std::optional<std::string> Judgement::MemoryTaken() const {
  auto seen = live_->MemoryTaken();
  return seen || !other_size_ ? seen : other_size_->live.MemoryTaken();
}

Result<Verdict> Judgement::JudgeWithRoom(size_t index) {
  wants_room_ = false;
  starts_alone_ = !built_[index].failure && HoldsFewHosts();
  auto verdict = JudgeOne(index);
  const bool others_waited = !starts_alone_ && (!request_.correctness_only ||
                                                other_size_ != nullptr || !hosts_ahead_.empty());
  starts_alone_ = false;
  if (!device_ || !others_waited) return verdict;
  if (!(verdict ? wants_room_ : LackedMemoryEarly(verdict.error()))) return verdict;
  EndWaitingHosts();
  starts_alone_ = true;
  auto with_room = JudgeOne(index);
  starts_alone_ = false;
  if (!with_room || !with_room->correctness) return with_room;
  if (verdict) {
    with_room->cost.start_s += verdict->cost.start_s;
    with_room->cost.fill_s += verdict->cost.fill_s;
    with_room->cost.timed_s += verdict->cost.timed_s;
  }
  std::string& note = with_room->correctness->note;
  if (!note.empty()) note += "; ";
  note +=
      "memory was short beside hosts of the judge's that waited for later, and it was judged again "
      "once they had ended";
  return with_room;
}

Result<Verdict> Judgement::JudgeOne(size_t index) {
  const BuiltCandidate& candidate = built_[index];
  Verdict verdict = NewVerdict(request_, candidate, *oracle_, python_, seed_, threads_, gpu());
  bool settled = false;
  const auto finish = [&]() -> Result<Verdict> {
    if (verdict.correctness) {
      std::string& note = verdict.correctness->note;
      const std::string left_out = NoteOfLeftOut(verdict.correctness->draws);
      if (!left_out.empty()) note += (note.empty() ? "" : "; ") + left_out;
    }
    ASSAY_RETURN_IF_ERROR(AddKernels(index, &verdict));
    if (device_ && settled)
      verdict.bottleneck = BottleneckOf(verdict, device_->gpu().facts().multiprocessors);
    return verdict;
  };
  if (candidate.failure) {
    verdict.outcome = Outcome::kBuildFailed;
    verdict.message = *candidate.failure;
    return finish();
  }
  live_->BeginCandidate();
  if (other_size_) other_size_->live.BeginCandidate();
  const std::unique_ptr<HostsOf> hosts = BeginHosts(index);
  expects_gate2_ = false;
  ASSAY_ASSIGN_OR_RETURN(bool final, PassGate1(candidate, *hosts, &verdict));
  if (final) return finish();
  const std::string& why = draws_->degenerate();
  if (hosts->other_size && !starts_alone_) hosts->other_size->Prefetch(0, 1);
  if (why.empty() && !request_.correctness_only && !starts_alone_)
    hosts->pairs.Prefetch(0, kPairsMin);
  if (hosts->other_size) {
    ASSAY_ASSIGN_OR_RETURN(final, PassOtherSize(*hosts, &verdict));
    if (final) return finish();
  }
  expects_gate2_ = true;
  if (!why.empty()) {
    verdict.outcome = Outcome::kUnsettled;
    verdict.message = fmt::format(
        "correct, and that means nothing: {}, so this problem cannot tell a kernel from one that "
        "computes nothing (assay audit says more)",
        why);
    return finish();
  }
  if (request_.correctness_only) {
    verdict.outcome = Outcome::kUnsettled;
    verdict.message = "correct; its speed was not asked for";
    return finish();
  }
  verdict.speed.emplace();
  verdict.speed->threshold = request_.threshold;
  if (against_) verdict.speed->against = {against_->source.path, against_->source.hash};
  const int64_t waiting_ns = MonotonicNs();
  // Nothing runs beside a measurement.
  for (auto& [next, ahead] : hosts_ahead_) {
    ahead->gate1.AwaitImports();
    if (ahead->other_size) ahead->other_size->AwaitImports();
  }
  if (listings_) {
    const Span span("await listings");
    listings_->Await();
  }
  verdict.cost.start_s += Seconds(MonotonicNs() - waiting_ns);
  ASSAY_ASSIGN_OR_RETURN(final, PassBaselines(candidate, hosts->pairs, &verdict));
  if (final) return finish();
  Settle(&verdict);
  settled = true;
  if (!against_)
    verdict.roofline = RooflineOf(verdict, request_.machine, oracle_->account(), gpu());
  return finish();
}

Result<void> JudgeCandidates(const JudgeRequest& request, const JudgeEvents& events) {
  JudgeEvents named = events;
  named.verdict = [&](Verdict verdict) {
    NameFiles(request.problem.path, verdict.candidate.path, &verdict.message);
    if (verdict.correctness)
      NameFiles(request.problem.path, verdict.candidate.path, &verdict.correctness->hint);
    events.verdict(verdict);
  };
  auto judged = Judgement(request, named).Run();
  // Whatever an interrupt made fail.
  if (!judged && events.stop.stopped())
    return std::unexpected(Error{ErrorKind::kInterrupted, "interrupted"});
  if (!judged && request.problem.device == "cuda" && judged.error().message.contains("CUDA") &&
      SaysOutOfMemory(judged.error().message))
    judged.error().message =
        "the GPU has too little memory left: end other programs there, or lower the problem's "
        "sizes with --set\n" +
        judged.error().message;
  if (!judged) NameFiles(request.problem.path, "", &judged.error().message);
  return judged;
}

}  // namespace assay
