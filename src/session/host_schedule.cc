#include "session/host_schedule.h"

#include "builders/python_build.h"
#include "hosts/blame.h"
#include "machine/machine.h"
#include "machine/seeds.h"
#include "rules/gate2.h"
#include "rules/pair_budget.h"
#include "session/host_plan.h"
#include "sides/host_starts.h"

namespace assay {

Result<void> HostSchedule::StartNurseries(PairRange pairs) {
  const SessionTerms& terms = bench_.terms;
  if (!terms.forks_hosts || !bench_.on_device() || bench_.saves_cores() ||
      UsableCpus().size() < kManyCores)
    return {};
  const Gpu& gpu = *bench_.gpu();
  if (pairs.first == 0) {
    ASSAY_RETURN_IF_ERROR(StartBuildNursery(bench_.python, gpu));
    ASSAY_RETURN_IF_ERROR(StartCandidateNurseries(
        bench_.python, gpu, ThreadsOfCorrectness(bench_.threads), true, {0, 1}));
  }
  if (terms.effort.correctness_only) return {};
  ASSAY_RETURN_IF_ERROR(StartCandidateNurseries(bench_.python, gpu, bench_.threads, false, pairs));
  if (terms.opponent.against) return {};
  return Pool({terms.opponent.baselines.front(), QueuesFor("")})
      .StartNurseries(pairs.first, pairs.end);
}

Result<void> HostSchedule::StartFirstNurseries() { return StartNurseries({0, kPairsMin}); }

Result<void> HostSchedule::StartFurtherNurseries() {
  return StartNurseries({kPairsMin, Looks()[1].pairs});
}

Result<void> HostSchedule::BeginOpponents(DeviceQueues queues) {
  const SessionTerms& terms = bench_.terms;
  if (terms.opponent.against || terms.effort.correctness_only) return {};
  ReferencePool& pool = Pool({terms.opponent.baselines.front(), queues});
  if (auto begun = pool.Prefetch(0, kPairsMin, false); !begun)
    return std::unexpected(TroubleAsError(begun.error(), "starting the reference"));
  return {};
}

void HostSchedule::MeetOracle() {
  for (auto& [kind, pool] : pools_) pool->Meet(*bench_.oracle, *bench_.live);
}

void HostSchedule::BeginBatch(std::span<const BuiltCandidate> candidates,
                              const OtherSizes& other_sizes, bool correctness_only) {
  candidates_ = candidates;
  other_sizes_ = other_sizes;
  correctness_only_ = correctness_only;
  expects_speed_ = true;
}

void HostSchedule::EndBatch() {
  ahead_.clear();
  ending_.Await();
  candidates_ = {};
  other_sizes_ = {};
}

CandidateHostSetup HostSchedule::SetupOf(const BuiltCandidate& candidate,
                                         DeviceQueues queues) const {
  return {candidate,
          bench_.terms.limits,
          bench_.python,
          *bench_.oracle,
          *bench_.live,
          bench_.settings,
          bench_.gpu(),
          bench_.threads,
          bench_.stop,
          false,
          bench_.terms.forks_hosts,
          queues};
}

std::unique_ptr<HostsOfCandidate> HostSchedule::Make(const BuiltCandidate& candidate) const {
  const DeviceQueues queues = QueuesFor(candidate.source.content);
  const CandidateHostSetup setup = SetupOf(candidate, queues);
  const int threads = ThreadsOfCorrectness(bench_.threads);
  // Timed hosts are left as programs are: the fill takes time.
  CandidateHostSetup of_correctness{candidate,
                                    bench_.terms.limits,
                                    bench_.python,
                                    *bench_.oracle,
                                    *bench_.live,
                                    bench_.correctness_settings,
                                    bench_.gpu(),
                                    threads,
                                    bench_.stop,
                                    true,
                                    bench_.terms.forks_hosts,
                                    queues};
  auto hosts = std::make_unique<HostsOfCandidate>(
      CandidateHosts(of_correctness), CandidateHosts(setup), std::deque<CandidateHosts>{});
  for (const auto& size : other_sizes_) {
    const size_t index = hosts->other_sizes.size();
    const bool is_another =
        index < candidate.at_other_sizes.size() && candidate.at_other_sizes[index];
    hosts->other_sizes.emplace_back(CandidateHostSetup{
        is_another ? *candidate.at_other_sizes[index] : candidate, bench_.terms.limits,
        bench_.python, size->oracle, size->live, size->settings, bench_.gpu(), threads, bench_.stop,
        true, bench_.terms.forks_hosts, queues});
  }
  return hosts;
}

std::unique_ptr<HostsOfCandidate> HostSchedule::Begin(size_t index) {
  HostPlanFacts facts;
  facts.on_device = bench_.on_device();
  facts.alone = alone_;
  facts.imports = candidates_[index].source.form == CandidateForm::kPython;
  facts.has_other_size = !other_sizes_.empty();
  facts.expects_speed = expects_speed_ && !bench_.saves_cores();
  facts.correctness_only = correctness_only_;
  facts.usable_cores = UsableCpus().size();
  const auto built = std::make_unique<bool[]>(candidates_.size());
  for (size_t i = 0; i < candidates_.size(); ++i)
    built[i] = !candidates_[i].failure && !candidates_[i].known;
  const auto begun = ahead_.extract(index);
  auto hosts = begun ? std::move(begun.mapped()) : Make(candidates_[index]);
  std::map<size_t, std::unique_ptr<HostsOfCandidate>> later;
  for (const HostsToBegin& begin : PlanHosts(facts, index, {built.get(), candidates_.size()})) {
    if (ahead_.contains(begin.candidate)) continue;
    auto& made = begin.candidate == index ? hosts : later[begin.candidate];
    if (!made) made = Make(candidates_[begin.candidate]);
    CandidateHosts& some = begin.use == HostUse::kPairs       ? made->pairs
                           : begin.use == HostUse::kOtherSize ? made->other_sizes.front()
                                                              : made->correctness;
    some.Prefetch(begin.first_pair, begin.count);
  }
  ahead_.merge(later);
  return hosts;
}

Result<void> HostSchedule::AwaitFirstImports(HostsOfCandidate& hosts) const {
  if (!bench_.on_device() || !hosts.correctness.IsPython()) return {};
  const auto imported = ImportOffDevice(bench_.gpu(), bench_.stop, [&] {
    hosts.correctness.AwaitImports();
    std::vector<Host*> starting = hosts.correctness.Imported();
    if (!hosts.other_sizes.empty()) {
      hosts.other_sizes.front().AwaitImports();
      for (Host* host : hosts.other_sizes.front().Imported()) starting.push_back(host);
    }
    StartDevices(starting, LibrariesOf(bench_.oracle->account()));
  });
  if (!imported) return std::unexpected(TroubleAsError(imported.error(), "a host starts"));
  return {};
}

void HostSchedule::AwaitImports() {
  for (auto& [next, hosts] : ahead_) {
    hosts->correctness.AwaitImports();
    for (CandidateHosts& some : hosts->other_sizes) some.AwaitImports();
  }
}

bool HostSchedule::HoldsFewHosts() {
  if (!bench_.on_device() || !bench_.live->MemoryHoldsFewHosts()) return false;
  EndWaitingHosts();
  return bench_.live->MemoryHoldsFewHosts();
}

void HostSchedule::EndWaitingHosts() {
  DropAll();
  ending_.Await();
}

void HostSchedule::DropAll() {
  pools_.clear();
  ahead_.clear();
}

int HostSchedule::PairsComing(int pair_index) const {
  return alone_ ? 1 : PairsUntilDecision(pair_index);
}

void HostSchedule::EndWarmReferences(const ReferenceKind& kind, int pair_index) {
  if (!alone_) return;
  std::erase_if(pools_, [&](const auto& pool) { return pool.first != kind; });
  if (const auto pool = pools_.find(kind); pool != pools_.end()) pool->second->KeepOnly(pair_index);
}

HostResult<void> HostSchedule::BeginPairs(int pair_index, CandidateHosts& hosts,
                                          const ReferenceKind& kind, bool opponent_leaves) {
  EndWarmReferences(kind, pair_index);
  if (alone_) return ImportAhead(pair_index, hosts, kind);
  for (auto& [other, pool] : pools_)
    if (other != kind) pool->MakeRoom(0);
  const int coming = PairsComing(pair_index);
  hosts.Prefetch(pair_index, coming);
  return Pool(kind).Prefetch(pair_index, coming, opponent_leaves);
}

HostResult<void> HostSchedule::ImportAhead(int pair_index, CandidateHosts& hosts,
                                           const ReferenceKind& kind) {
  const int coming = PairsUntilDecision(pair_index);
  ReferencePool& opponents = Pool(kind);
  hosts.Prefetch(pair_index, coming, true);
  if (auto begun = opponents.Prefetch(pair_index, coming, false, true); !begun) return begun;
  return ImportOffDevice(bench_.gpu(), bench_.stop, [&] {
    hosts.AwaitImports();
    opponents.AwaitImports();
  });
}

void HostSchedule::StartPairs(CandidateHosts& hosts, const ReferenceKind& kind,
                              bool opponent_leaves) {
  if (!BeginPairs(0, hosts, kind, opponent_leaves)) return;
  ReferencePool& opponents = Pool(kind);
  const auto imported = ImportOffDevice(bench_.gpu(), bench_.stop, [&] {
    hosts.AwaitImports();
    opponents.AwaitImports();
    std::vector<Host*> starting = hosts.Imported();
    for (Host* host : opponents.Imported()) starting.push_back(host);
    StartDevices(starting, LibrariesOf(bench_.oracle->account()));
  });
  if (!imported) return;
  opponents.Prepare(0, PairsComing(0), opponent_leaves);
  hosts.Prepare(0, PairsComing(0));
}

ReferencePool& HostSchedule::Pool(const ReferenceKind& kind) {
  auto& pool = pools_[kind];
  if (!pool) {
    ReferencePool::Options options;
    options.problem = bench_.terms.problem;
    options.python = bench_.python;
    options.threads = bench_.threads;
    options.weights_seed = DeriveSeed(bench_.seed, SeedStream::kWeights);
    options.baseline = kind.baseline;
    options.hosts_max = ReferencePool::WarmHostsMax();
    options.gpu = bench_.gpu();
    options.queues = kind.queues;
    options.stop = bench_.stop;
    options.forks = bench_.terms.forks_hosts;
    pool = std::make_unique<ReferencePool>(std::move(options));
    if (bench_.live) pool->Meet(*bench_.oracle, *bench_.live);
  }
  return *pool;
}

}  // namespace assay
