#include "session/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/trace.h"
#include "gpu/turns.h"
#include "hosts/blame.h"
#include "machine/machine.h"
#include "machine/meter.h"
#include "machine/seeds.h"
#include "rules/bottleneck.h"
#include "session/host_plan.h"
#include "session/kernel_listings.h"
#include "session/record.h"
#include "session/tool_facts.h"
#include "session/trial.h"
#include "sides/host_starts.h"

namespace assay {
namespace {

// Master slots where nothing is timed: the draws take half of them at most.
constexpr uint32_t kSlotsOfDraws = 2 * kDrawsMax;

void AddTotals(double judged_s, Cost* cost) {
  cost->total_s = cost->build_s + judged_s;
  cost->overhead_s = std::max(0.0, judged_s - cost->start_s - cost->fill_s - cost->timed_s);
}

void Building(const JudgeEvents& events, size_t done, size_t all) {
  events.progress({JudgeStage::kBuilding, fmt::format("compiling {} of {}", done + 1, all),
                   static_cast<double>(done) / static_cast<double>(all), done, all});
}

// Marks the candidates that need not be judged.
void FindKnown(std::optional<std::set<std::string>> artifacts, std::vector<BuiltCandidate>* built) {
  if (!artifacts) return;
  for (BuiltCandidate& candidate : *built)
    if (const std::string artifact = ArtifactHash(candidate); !artifact.empty())
      candidate.known = !artifacts->insert(artifact).second;
}

// Returns true if it is known, and says so.
bool TellKnown(const BuiltCandidate& candidate, const JudgeEvents& events) {
  if (candidate.known) events.known(ArtifactHash(candidate));
  return candidate.known;
}

DrawProgress Drawing(const JudgeEvents& events) {
  return [&events](size_t done, size_t all) {
    events.progress({JudgeStage::kDrawing, "drawing inputs",
                     static_cast<double>(done) / static_cast<double>(all), 0, 0});
  };
}

// Whether values and results of a problem take longer than to build a candidate.
bool IsLarge(const Work& work) {
  constexpr double kLargeBytes = 1 << 28, kLargeOperations = 2e10;
  return work.bytes > kLargeBytes || work.operations > kLargeOperations;
}

}  // namespace

struct Session::BatchAtWork {
  std::unique_ptr<Batch> batch;
  std::vector<BuiltCandidate> built;
  KernelListings listings;
  const Asked& asked;
  const JudgeEvents& events;
  size_t told = 0;      // candidates whose end was told before values were drawn
  std::string lacking;  // about candidates that need what is not here
};

Session::Session(SessionTerms terms, StopToken stop)
    : bench_{.terms = std::move(terms), .stop = stop},
      schedule_(bench_),
      batches_(bench_.terms.seed != 0 ? bench_.terms.seed : FreshSeed(), FreshSeed,
               [this](uint64_t seed) { return MakeNextBatch(seed); }),
      constructed_weights_(bench_) {}

Result<std::unique_ptr<Session>> Session::Open(SessionTerms terms, StopToken stop,
                                               const JudgeEvents& events, CandidateBuilds* builds,
                                               const MemoryTerms& memory) {
  ASSAY_RETURN_IF_ERROR(RequireSandbox());
  std::unique_ptr<Session> session(new Session(std::move(terms), stop));
  ASSAY_RETURN_IF_ERROR(session->Start(events, builds, memory));
  return session;
}

Result<void> Session::Start(const JudgeEvents& events, CandidateBuilds* builds,
                            const MemoryTerms& memory) {
  const SessionTerms& terms = bench_.terms;
  bench_.seed = batches_.next_seed();
  ASSAY_ASSIGN_OR_RETURN(bench_.python, FindPython(terms.python));
  const bool on_device = terms.problem.device == "cuda";
  bench_.threads = terms.threads > 0 ? terms.threads : DefaultThreads(on_device);
  if (bench_.threads > static_cast<int>(UsableCpus().size()))
    return UsageError(
        fmt::format("--threads {} asks for more than the {} cores that this process may use",
                    bench_.threads, UsableCpus().size()));
  const uint64_t weights_seed = DeriveSeed(bench_.seed, SeedStream::kWeights);
  bench_.settings = HostSettings(terms.problem, bench_.threads, weights_seed, "eager");
  bench_.correctness_settings =
      HostSettings(terms.problem, ThreadsOfCorrectness(bench_.threads), weights_seed, "eager");
  OracleOptions& options = bench_.oracle_options;
  options.problem = terms.problem;
  options.python = bench_.python;
  options.threads = bench_.threads;
  options.weights_seed = weights_seed;
  options.memory_bytes = AvailableMemoryBytes() / 4 * 3 / static_cast<uint64_t>(terms.sharers);
  if (terms.effort.correctness_only) options.slots_most = kSlotsOfDraws;
  options.stop = bench_.stop;
  options.forks = terms.forks_hosts;
  if (on_device) {
    ASSAY_ASSIGN_OR_RETURN(bench_.device, JudgeDevice::Open(bench_.stop));
    options.device = bench_.device.get();
    options.memory_bytes = JudgeDevice::BytesForValues(bench_.gpu()->facts().memory_bytes);
  }
  return OpenReference(events, builds, memory);
}

Result<bool> Session::NoneBuilds(Host& host, const JudgeEvents& events, CandidateBuilds& builds) {
  if (bench_.on_device() || bench_.terms.opponent.against ||
      !IsLarge(FactsOf(bench_.terms.problem, *estimate_).work))
    return false;
  std::string record = ConstructionRecord(host, bench_.oracle_options);
  if (record.empty()) return false;
  Building(events, 0, builds.size());
  return builds.BuildFirst(
      {bench_.python, bench_.settings, std::move(record), estimate_->call.weights});
}

Result<void> Session::OpenReference(const JudgeEvents& events, CandidateBuilds* builds,
                                    const MemoryTerms& memory) {
  const SessionTerms& terms = bench_.terms;
  events.progress({JudgeStage::kStarting, "starting the reference", 0, 0, 0});
  ASSAY_RETURN_IF_ERROR(schedule_.StartFirstNurseries());
  const int64_t starting_ns = MonotonicNs();
  ASSAY_ASSIGN_OR_RETURN(std::shared_ptr<Host> host, StartOracleHost(bench_.oracle_options));
  bench_.host_start_s = Seconds(MonotonicNs() - starting_ns);
  ASSAY_RETURN_IF_ERROR(schedule_.StartFurtherNurseries());
  const OracleOptions& options = bench_.oracle_options;
  ASSAY_ASSIGN_OR_RETURN(estimate_, EstimateProblem(*host, options));
  if (builds != nullptr) {
    ASSAY_ASSIGN_OR_RETURN(const bool none, NoneBuilds(*host, events, *builds));
    if (none) return {};
  }
  // Beside another judge's measurement CUDA may start, but no problem may load.
  if (bench_.on_device()) StartDevices({host.get()}, LibrariesOf(estimate_->account));
  if (bench_.on_device()) ASSAY_RETURN_IF_ERROR(ReserveMemory(*host, events, memory));
  ASSAY_ASSIGN_OR_RETURN(const GpuTurn turn, GpuTurn::Begin(bench_.gpu(), bench_.stop));
  if (bench_.on_device() && !bench_.saves_cores() && UsableCpus().size() >= kManyCores)
    ASSAY_RETURN_IF_ERROR(schedule_.BeginOpponents(schedule_.QueuesFor("")));
  ASSAY_ASSIGN_OR_RETURN(first_sizes_, MakeBatchSizes(bench_, bench_.seed, host, Drawing(events)));
  ASSAY_ASSIGN_OR_RETURN(bench_.oracle, Oracle::Open(options, std::move(host), *estimate_));
  ASSAY_ASSIGN_OR_RETURN(bench_.rule,
                         RuleFor(terms.problem, terms.precision, terms.tolerance, *bench_.oracle));
  bench_.tolerance = bench_.oracle->description().own_check ? std::string(kByOwnCheck)
                     : !bench_.rule.allclose                ? "error-ratio"
                     : terms.tolerance.empty()              ? terms.problem.tolerance
                                                            : terms.tolerance;
  ASSAY_ASSIGN_OR_RETURN(bench_.live, LiveSlots::Create(*bench_.oracle, bench_.device.get()));
  schedule_.MeetOracle();
  if (bench_.saves_cores()) return {};
  return schedule_.BeginOpponents(schedule_.QueuesFor(""));
}

// It has no turn at the device meanwhile, which others need before they give memory back.
Result<void> Session::ReserveMemory(Host& host, const JudgeEvents& events,
                                    const MemoryTerms& memory) {
  OracleOptions& options = bench_.oracle_options;
  const auto tell = [&](uint64_t bytes) {
    memory.on_wait();
    events.progress(
        {JudgeStage::kStarting,
         fmt::format("waits for {:.0f} GB of the GPU's memory", static_cast<double>(bytes) / 1e9),
         0, 0, 0});
  };
  auto taken = bench_.device->ReserveFor(
      estimate_->call, {bench_.terms.sharers, memory.within_bytes, tell}, bench_.stop);
  if (!taken && taken.error().code == ErrorCode::kTooLarge) {
    options.memory_bytes =
        memory.within_bytes > 0 ? memory.within_bytes : bench_.device->BytesForValues();
    return std::unexpected(TooLarge(host, options, estimate_->call));
  }
  if (!taken) return std::unexpected(taken.error());
  bench_.memory = std::move(taken->reserved);
  options.memory_bytes = taken->values_bytes;
  return {};
}

Result<std::unique_ptr<Batch>> Session::MakeNextBatch(uint64_t seed) {
  OtherSizes other_sizes = std::move(first_sizes_);
  if (seed != bench_.seed && !bench_.terms.problem.ragged.empty()) {
    if (!size_host_) {
      ASSAY_ASSIGN_OR_RETURN(size_host_, StartOracleHost(bench_.oracle_options));
    }
    ASSAY_ASSIGN_OR_RETURN(other_sizes, MakeBatchSizes(bench_, seed, size_host_, drawing_));
  }
  return MakeBatch(bench_, seed, std::move(other_sizes), drawing_);
}

Result<void> Session::PrepareNext(const std::function<void()>& between) {
  drawing_ = [&between](size_t, size_t) { between(); };
  bench_.notice = [](const std::string&) {};
  ASSAY_ASSIGN_OR_RETURN(const GpuTurn turn, GpuTurn::Begin(bench_.gpu(), bench_.stop));
  return batches_.Prepare();
}

LateBuildSetup Session::BuildSetup(const OtherSizes* other_sizes) const {
  return {bench_.terms, bench_.python,   *bench_.oracle, other_sizes,
          bench_.gpu(), bench_.settings, bench_.stop};
}

// An opponent is timed at one size alone.
Result<void> Session::BuildOpponent() {
  const auto& source = bench_.terms.opponent.against;
  if (!source || against_) return {};
  CandidateBuilds builds({&*source}, bench_.terms.limits, bench_.stop);
  ASSAY_ASSIGN_OR_RETURN(auto built, builds.Finish(BuildSetup(nullptr), [](size_t) {}));
  if (built[0].failure)
    return Fail(
        built[0].fault == BuildFault::kNotHere ? ErrorKind::kEnvironment : ErrorKind::kUsage,
        fmt::format("--against {} does not build: {}", source->path, *built[0].failure));
  against_ = std::move(built[0]);
  return {};
}

Result<Verdict> Session::Judge(const CandidateSource& source, const Asked& asked,
                               const JudgeEvents& events) {
  std::optional<Verdict> found;
  JudgeEvents own = events;
  own.verdict = [&](const Verdict& verdict) {
    events.verdict(verdict);
    found = verdict;
  };
  ASSAY_RETURN_IF_ERROR(JudgeAll({&source, 1}, asked, own));
  return std::move(*found);
}

Result<void> Session::JudgeAll(std::span<const CandidateSource> sources, const Asked& asked,
                               const JudgeEvents& events) {
  std::vector<const CandidateSource*> pointers;
  for (const CandidateSource& source : sources) pointers.push_back(&source);
  CandidateBuilds builds(std::move(pointers), bench_.terms.limits, bench_.stop);
  return JudgeAll(builds, asked, events);
}

Result<void> Session::JudgeAll(CandidateBuilds& builds, const Asked& asked,
                               const JudgeEvents& events) {
  if (!bench_.oracle) return TellFailed(builds, asked, events);
  drawing_ = Drawing(events);
  bench_.notice = events.notice;
  // Values take long to draw where a problem is large. A candidate that does not build needs none,
  // so the first batch's come after the builds; later ones were mostly drawn while nobody waited.
  const bool first = batches_.next_seed() == bench_.seed && !batches_.waiting();
  std::unique_ptr<Batch> batch;
  if (!first) {
    ASSAY_ASSIGN_OR_RETURN(const GpuTurn turn, GpuTurn::Begin(bench_.gpu(), bench_.stop));
    ASSAY_ASSIGN_OR_RETURN(batch, batches_.Take());
  }
  // All builds end before anything is timed: a compiler beside a measurement would be noise.
  ASSAY_ASSIGN_OR_RETURN(
      auto built, builds.Finish(BuildSetup(first ? &first_sizes_ : &batch->other_sizes),
                                [&](size_t done) { Building(events, done, builds.size()); }));
  FindKnown(asked.known, &built);
  ASSAY_RETURN_IF_ERROR(BuildOpponent());
  events.built();
  BatchAtWork work{nullptr, std::move(built), KernelListings(work.built, bench_.gpu(), bench_.stop),
                   asked,   events,           0,
                   {}};
  ASSAY_RETURN_IF_ERROR(TellFirst(work));
  if (work.told == work.built.size()) return Ended(work);
  ASSAY_ASSIGN_OR_RETURN(const GpuTurn turn, GpuTurn::Begin(bench_.gpu(), bench_.stop));
  if (first) {
    auto taken = batches_.Take();
    if (!taken && taken.error().kind == ErrorKind::kUnjudged) {
      for (; work.told < work.built.size(); ++work.told)
        TellUnjudged(work, work.told, taken.error());
      return Ended(work);
    }
    ASSAY_ASSIGN_OR_RETURN(batch, std::move(taken));
  }
  work.batch = std::move(batch);
  schedule_.BeginBatch(work.built, work.batch->other_sizes,
                       asked.correctness_only || bench_.terms.effort.correctness_only);
  auto judged = JudgeBatch(work);
  schedule_.EndBatch();
  return judged;
}

Result<void> Session::TellFailed(CandidateBuilds& builds, const Asked& asked,
                                 const JudgeEvents& events) {
  std::vector<BuiltCandidate> built = builds.TakeFailed();
  events.built();
  BatchAtWork work{nullptr, std::move(built), KernelListings(work.built, bench_.gpu(), bench_.stop),
                   asked,   events,           0,
                   {}};
  ASSAY_RETURN_IF_ERROR(TellFirst(work));
  return Ended(work);
}

Result<void> Session::TellFirst(BatchAtWork& work) {
  for (; work.told < work.built.size(); ++work.told) {
    if (TellKnown(work.built[work.told], work.events)) continue;
    if (!work.built[work.told].failure) break;
    auto judged = VerdictOnFailure(work, work.told);
    if (!judged && judged.error().kind == ErrorKind::kUnjudged) {
      TellUnjudged(work, work.told, judged.error());
      continue;
    }
    ASSAY_ASSIGN_OR_RETURN(Verdict verdict, std::move(judged));
    AddTotals(0, &verdict.cost);
    work.events.verdict(verdict);
  }
  return {};
}

Result<Verdict> Session::VerdictOnFailure(BatchAtWork& work, size_t index) {
  const BuiltCandidate& candidate = work.built[index];
  if (candidate.fault == BuildFault::kNotHere)
    return Fail(ErrorKind::kUnjudged, *candidate.failure);
  Verdict verdict = NewVerdict(bench_.terms, candidate,
                               bench_.oracle ? FactsOf(bench_.terms.problem, *bench_.oracle)
                                             : FactsOf(bench_.terms.problem, *estimate_),
                               bench_.python, bench_.seed, bench_.threads, bench_.gpu());
  // A file in Python runs as it is built.
  const bool ran_on =
      candidate.fault == BuildFault::kTimedOut && candidate.source.form == CandidateForm::kPython;
  FailToBuild(*candidate.failure, candidate.line, &verdict);
  if (ran_on) verdict.outcome = Outcome::kTimedOut;
  ASSAY_RETURN_IF_ERROR(work.listings.AddTo(index, &verdict));
  return verdict;
}

void Session::TellUnjudged(BatchAtWork& work, size_t index, Error error) const {
  const std::string& path = work.built[index].source.path;
  NameFiles(bench_.terms.problem.path, path, &error.message);
  error.message = fmt::format("{} is not judged: {}", path, error.message);
  work.events.unjudged(error);
  work.lacking += (work.lacking.empty() ? "" : "\n") + error.message;
}

Result<void> Session::Ended(const BatchAtWork& work) {
  if (!work.lacking.empty()) return Fail(ErrorKind::kUnjudged, work.lacking);
  return {};
}

Result<void> Session::JudgeBatch(BatchAtWork& work) {
  for (size_t i = work.told; i < work.built.size(); ++i) {
    if (TellKnown(work.built[i], work.events)) continue;
    const int64_t begin_ns = MonotonicNs();
    auto judged = JudgeOne(work, i);
    if (!judged && judged.error().kind == ErrorKind::kUnjudged) {
      TellUnjudged(work, i, judged.error());
      continue;
    }
    ASSAY_ASSIGN_OR_RETURN(Verdict verdict, std::move(judged));
    AddTotals(Seconds(MonotonicNs() - begin_ns), &verdict.cost);
    const ToolSetup tools{
        bench_, *work.batch, schedule_, work.built[i], [&](const std::string& text) {
          work.events.progress({JudgeStage::kTools, text, 0, i, work.built.size()});
        }};
    auto answers = AddToolFacts(tools, &verdict);
    if (answers && bench_.terms.tools.probes) answers = probes_.Add(tools, &verdict);
    work.built[i].artifact.clear();
    work.events.verdict(verdict);
    ASSAY_RETURN_IF_ERROR(answers);
    // The verdict stood before its run without pauses was interrupted.
    if (bench_.terms.effort.sustained_s > 0 && verdict.speed && !verdict.sustained &&
        bench_.stop.stopped())
      return Fail(ErrorKind::kInterrupted, "interrupted");
    ASSAY_RETURN_IF_ERROR(CheckDevice(bench_, schedule_, verdict));
  }
  return Ended(work);
}

Result<Verdict> Session::JudgeOne(BatchAtWork& work, size_t index) {
  auto verdict = JudgeWithRoom(work, index);
  // What it held comes back.
  if (!verdict || bench_.live->MemoryIsShort()) schedule_.ending().Await();
  if (!verdict && verdict.error().kind != ErrorKind::kUnjudged)
    verdict = ForWantOfMemory(work, index, verdict.error());
  // Where the device hangs, whoever waited for it has failed.
  if (!verdict && bench_.on_device() && verdict.error().kind != ErrorKind::kInterrupted)
    ASSAY_RETURN_IF_ERROR(
        bench_.device->CheckAnswers(fmt::format("{} was judged", work.built[index].source.path)));
  return verdict;
}

Result<Verdict> Session::RunTrial(BatchAtWork& work, size_t index, bool* wants_room) {
  const BuiltCandidate& candidate = work.built[index];
  if (candidate.failure) return VerdictOnFailure(work, index);
  bench_.live->BeginCandidate();
  for (const auto& size : work.batch->other_sizes) size->live.BeginCandidate();
  Trial trial({bench_, *work.batch, schedule_, candidate, against_ ? &*against_ : nullptr,
               work.asked.correctness_only || bench_.terms.effort.correctness_only, work.asked.bar,
               [&](JudgeStage stage, const std::string& text, double fraction) {
                 work.events.progress({stage, text, fraction, index, work.built.size()});
               },
               [&] {
                 schedule_.AwaitImports();
                 work.listings.Await();
               }});
  const auto hosts = schedule_.Begin(index);
  ASSAY_RETURN_IF_ERROR(schedule_.AwaitFirstImports(*hosts));
  auto verdict = trial.Run(*hosts);
  *wants_room = trial.wants_room();
  if (!verdict) return verdict;
  if (const auto& match = trial.asks_for_constructed())
    verdict = JudgeOnConstructed(work, index, *match, std::move(*verdict));
  if (!verdict) return verdict;
  ASSAY_RETURN_IF_ERROR(work.listings.AddTo(index, &*verdict));
  if (bench_.on_device() && trial.settled())
    verdict->bottleneck = BottleneckOf(*verdict, bench_.gpu()->facts().multiprocessors);
  return verdict;
}

Result<Verdict> Session::JudgeOnConstructed(BatchAtWork& work, size_t index,
                                            const WeightsMatch& match, Verdict verdict) {
  schedule_.ending().Await();
  schedule_.AwaitImports();
  JudgeEvents events;
  events.progress = [&](ProgressEvent event) {
    event.candidate = index;
    event.candidates = work.built.size();
    work.events.progress(event);
  };
  const Asked asked{
      .correctness_only = work.asked.correctness_only || bench_.terms.effort.correctness_only,
      .bar = work.asked.bar};
  return constructed_weights_.Judge(work.built[index].source, match, asked, events,
                                    std::move(verdict));
}

Result<Verdict> Session::JudgeWithRoom(BatchAtWork& work, size_t index) {
  bool wants_room = false;
  schedule_.set_alone(!work.built[index].failure && schedule_.HoldsFewHosts());
  auto verdict = RunTrial(work, index, &wants_room);
  const bool others_waited =
      !schedule_.alone() &&
      (!work.asked.correctness_only || !work.batch->other_sizes.empty() || schedule_.any_ahead());
  schedule_.set_alone(false);
  if (!bench_.on_device() || !others_waited) return verdict;
  if (!(verdict ? wants_room : LackedMemoryEarly(work, verdict.error()))) return verdict;
  schedule_.EndWaitingHosts();
  schedule_.set_alone(true);
  auto with_room = RunTrial(work, index, &wants_room);
  schedule_.set_alone(false);
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

bool Session::LackedMemoryEarly(const BatchAtWork& work, const Error& error) {
  if (schedule_.expects_speed() || error.kind != ErrorKind::kEnvironment ||
      !MayLackMemory(error.code))
    return false;
  schedule_.ending().Await();
  return !MemoryTaken(work);
}

std::optional<std::string> Session::MemoryTaken(const BatchAtWork& work) const {
  auto seen = bench_.live->MemoryTaken();
  for (const auto& size : work.batch->other_sizes)
    if (!seen) seen = size->live.MemoryTaken();
  return seen;
}

Result<Verdict> Session::ForWantOfMemory(BatchAtWork& work, size_t index, const Error& error) {
  const auto seen = MemoryTaken(work);
  if (!seen || error.kind == ErrorKind::kInterrupted) return std::unexpected(error);
  Verdict verdict =
      NewVerdict(bench_.terms, work.built[index], FactsOf(bench_.terms.problem, *bench_.oracle),
                 bench_.python, bench_.seed, bench_.threads, bench_.gpu());
  verdict.outcome = Outcome::kOutOfMemory;
  verdict.message = *seen;
  verdict.log = error.message;
  schedule_.DropAll();
  ASSAY_RETURN_IF_ERROR(work.listings.AddTo(index, &verdict));
  return verdict;
}

}  // namespace assay
