// One problem held open: oracle, slots and reference hosts stay warm, and candidate after candidate
// is judged.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "model/event.h"
#include "session/batch.h"
#include "session/candidate_builds.h"
#include "session/fresh_batches.h"
#include "session/host_schedule.h"
#include "session/terms.h"
#include "session/workbench.h"

namespace assay {

// Not safe for several threads: hosts belong to the thread that opened the session. After an error
// the session is of no more use.
class Session {
 public:
  // Starts the reference and makes the first batch's draws. `stop` ends every wait of the session.
  // Errors: the request's (kUsage), the machine's (kEnvironment), kInterrupted.
  static Result<std::unique_ptr<Session>> Open(SessionTerms terms, StopToken stop,
                                               const JudgeEvents& events);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  struct Asked {
    bool correctness_only = false;  // nothing is timed; outcome `correct`
  };
  // Judges one candidate, or several on one batch of values: the sources are built side by side,
  // and measured one at a time. A bad candidate is a verdict. Verdicts already given to
  // `events.verdict` stand whatever comes after.
  Result<Verdict> Judge(const CandidateSource& source, const Asked& asked,
                        const JudgeEvents& events);
  Result<void> JudgeAll(std::span<const CandidateSource> sources, const Asked& asked,
                        const JudgeEvents& events);
  // The same with builds that have begun (JudgeCandidates begins them beside Open).
  Result<void> JudgeAll(CandidateBuilds& builds, const Asked& asked, const JudgeEvents& events);

  // Makes the next batch, which the next JudgeAll does otherwise, then draws as many values for
  // timed blocks as the last batch took, for as long as `go_on` says. `go_on` is called between
  // draws, too. Call it while nothing is measured. Errors as JudgeAll's.
  Result<void> PrepareNext(const std::function<bool()>& go_on);

  const ProblemDescription& description() const { return bench_.oracle->description(); }
  const Workbench& bench() const { return bench_; }

 private:
  // One batch in hand.
  struct Round;

  Session(SessionTerms terms, StopToken stop);
  Result<void> Start(const JudgeEvents& events);
  Result<void> OpenReference(const JudgeEvents& events);
  Result<std::unique_ptr<Batch>> MakeNextBatch(uint64_t seed);
  LateBuildSetup BuildSetup(const OtherSize* other_size) const;
  Result<void> BuildOpponent();
  Result<void> JudgeRound(Round& round);
  Result<Verdict> JudgeOne(Round& round, size_t index);
  Result<Verdict> RunTrial(Round& round, size_t index, bool* wants_room);
  // The same; where the device's memory was short before it was timed, once more with no other host
  // of the judge's beside those that work, and so at once where few fit.
  Result<Verdict> JudgeWithRoom(Round& round, size_t index);
  // Whether the judge's own hosts lacked memory before the candidate was timed, which had not taken
  // it.
  bool LackedMemoryEarly(const Round& round, const Error& error);
  // What is said of a candidate that had taken the device's memory, once its processes are gone.
  std::optional<std::string> MemoryTaken(const Round& round) const;
  // The verdict where the trouble that ended a trial is that the candidate had taken the device's
  // memory; else the error.
  Result<Verdict> ForWantOfMemory(Round& round, size_t index, const Error& error);

  Workbench bench_;
  HostSchedule schedule_;
  // The oracle's host loads the first batch's other size, before the problem itself; a host of its
  // own those of later batches.
  std::unique_ptr<OtherSize> first_size_;
  std::shared_ptr<Host> size_host_;
  FreshBatches<Batch> batches_;
  DrawProgress drawing_;                 // of whoever waits for a batch now
  std::vector<uint32_t> timed_batches_;  // values of each batch of blocks that the last round took
  std::optional<BuiltCandidate> against_;  // the opponent, once it is built
};

}  // namespace assay
