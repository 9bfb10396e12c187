// Holds one problem open: oracle, slots and reference hosts stay warm while candidate after
// candidate is judged.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "gpu/turns.h"
#include "model/event.h"
#include "session/batch.h"
#include "session/call_probes.h"
#include "session/candidate_builds.h"
#include "session/constructed_weights.h"
#include "session/fresh_batches.h"
#include "session/host_schedule.h"
#include "session/terms.h"
#include "session/workbench.h"

namespace assay {

// How a session comes to memory of a device.
struct MemoryTerms {
  uint64_t within_bytes = 0;  // set in a session within another one (Sharing)
  // Called while it waits: this process's other sessions must give theirs back.
  std::function<void()> on_wait = [] {};
};

// Not safe for several threads: hosts belong to the thread that opened the session. Do not use a
// session after an error.
class Session {
 public:
  // Starts the reference; the first batch's values are drawn once its candidates are built. `stop`
  // ends every wait of the session. `builds`: of the candidates that will be judged first; if the
  // problem is large and none of them builds, the problem is not even called, and the session is
  // good for JudgeAll(builds) alone. Errors: the request's (kUsage), the machine's (kEnvironment),
  // kInterrupted.
  static Result<std::unique_ptr<Session>> Open(SessionTerms terms, StopToken stop,
                                               const JudgeEvents& events,
                                               CandidateBuilds* builds = nullptr,
                                               const MemoryTerms& memory = {});
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  // Takes a turn at the device where much memory comes back: that takes bandwidth from another's
  // measurement.
  ~Session() {
    constexpr uint64_t kMuchBytes = uint64_t{20} << 30;
    if (bench_.memory.bytes() < kMuchBytes) return;
    if (auto turn = GpuTurn::Begin(bench_.gpu(), bench_.stop)) closing_.emplace(std::move(*turn));
  }

  using Asked = SessionAsked;
  // Judge one candidate, or several on one batch of values: sources are built side by side and
  // measured one at a time. A bad candidate is a verdict. Verdicts already given to
  // `events.verdict` remain valid after an error. kUnjudged ends neither the batch nor the session:
  // it comes last, and names each candidate that needs what this machine lacks.
  Result<Verdict> Judge(const CandidateSource& source, const Asked& asked,
                        const JudgeEvents& events);
  Result<void> JudgeAll(std::span<const CandidateSource> sources, const Asked& asked,
                        const JudgeEvents& events);
  // The same with builds that have begun: JudgeCandidates begins them beside Open.
  Result<void> JudgeAll(CandidateBuilds& builds, const Asked& asked, const JudgeEvents& events);

  // Makes the next batch's draws, which the next JudgeAll makes otherwise. Calls `between` between
  // two draws. Call it while nothing is measured. Errors as JudgeAll's.
  Result<void> PrepareNext(const std::function<void()>& between);

  // False if the problem was not called, as none of its first candidates builds.
  bool is_open() const { return bench_.oracle.has_value(); }
  const ProblemDescription& description() const { return bench_.oracle->description(); }
  const Workbench& bench() const { return bench_; }

 private:
  // The present batch.
  struct BatchAtWork;

  Session(SessionTerms terms, StopToken stop);
  Result<void> Start(const JudgeEvents& events, CandidateBuilds* builds, const MemoryTerms& memory);
  Result<void> OpenReference(const JudgeEvents& events, CandidateBuilds* builds,
                             const MemoryTerms& memory);
  // On a device: reserves what the problem takes there; until then the limit is all of it.
  Result<void> ReserveMemory(Host& host, const JudgeEvents& events, const MemoryTerms& memory);
  // Builds the candidates of a large problem before it is called. Returns true if all fail.
  Result<bool> NoneBuilds(Host& host, const JudgeEvents& events, CandidateBuilds& builds);
  // Gives the verdicts on candidates of which none builds.
  Result<void> TellFailed(CandidateBuilds& builds, const Asked& asked, const JudgeEvents& events);
  Result<std::unique_ptr<Batch>> MakeNextBatch(uint64_t seed);
  LateBuildSetup BuildSetup(const OtherSizes* other_sizes) const;
  Result<void> BuildOpponent();
  Result<void> JudgeBatch(BatchAtWork& work);
  // Gives the verdicts on the first candidates, as far as they did not build or are known.
  Result<void> TellFirst(BatchAtWork& work);
  Result<Verdict> VerdictOnFailure(BatchAtWork& work, size_t index);
  // Tells that a candidate needs what is not here, and keeps that for the end of the batch.
  void TellUnjudged(BatchAtWork& work, size_t index, Error error) const;
  static Result<void> Ended(const BatchAtWork& work);
  Result<Verdict> JudgeOne(BatchAtWork& work, size_t index);
  Result<Verdict> RunTrial(BatchAtWork& work, size_t index, bool* wants_room);
  // Judges a candidate with wrong values on the weights that its constructor makes; returns the
  // verdict to give.
  Result<Verdict> JudgeOnConstructed(BatchAtWork& work, size_t index, const WeightsMatch& match,
                                     Verdict verdict);
  // Runs a trial. If the device's memory was short before the candidate was timed, runs it again
  // without the judge's waiting hosts. If only few hosts fit, ends waiting hosts first and starts
  // hosts one by one.
  Result<Verdict> JudgeWithRoom(BatchAtWork& work, size_t index);
  // Returns true if the judge's own hosts lacked memory before the candidate was timed, and the
  // candidate had not taken it.
  bool LackedMemoryEarly(const BatchAtWork& work, const Error& error);
  // Describes a candidate that took the device's memory, once its processes are gone; otherwise
  // nullopt.
  std::optional<std::string> MemoryTaken(const BatchAtWork& work) const;
  // Returns the verdict if a trial failed because the candidate took the device's memory; otherwise
  // the error.
  Result<Verdict> ForWantOfMemory(BatchAtWork& work, size_t index, const Error& error);

  std::optional<GpuTurn> closing_;  // ends once all is given back
  Workbench bench_;
  std::optional<ProblemEstimate> estimate_;
  HostSchedule schedule_;
  // The oracle's host loads the first batch's other sizes, before the problem itself. `size_host_`
  // loads those of later batches.
  OtherSizes first_sizes_;
  std::shared_ptr<Host> size_host_;
  FreshBatches<Batch> batches_;
  DrawProgress drawing_;                   // of the present wait for a batch
  std::optional<BuiltCandidate> against_;  // the opponent candidate, once built
  ConstructedWeights constructed_weights_;
  CallProbes probes_;
};

}  // namespace assay
