// The re-judgement at a deadline: each member's best candidate of each board is judged once more,
// on fresh seeds, so that no rank at the deadline rests on a lucky sample.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "serve/classes.h"
#include "serve/jobs.h"

namespace assay {

struct FinalistRow {
  Account account;
  Job best;                                                 // that was the best before the deadline
  Job final;                                                // that judges it once more
  double best_speedup = 0, best_low = 0, best_high = 0;     // as the board has it
  double final_speedup = 0, final_low = 0, final_high = 0;  // 0: not yet, or without a speed
  bool final_differs = false;                               // a spot check disagreed with it
};

class Finals {
 public:
  // All must outlive this object.
  Finals(Database& database, Classes& classes, Jobs& jobs)
      : database_(database), classes_(classes), jobs_(jobs) {}

  // Closes classes whose deadline has passed; once all jobs of a member that came before it have
  // ended and stand on the board, asks for the member's finals. Each is asked for once, whatever is
  // killed meanwhile. Call it from time to time, after the board was brought up to date. Returns
  // how many finals were asked for.
  Result<int> Tend(Instant now);
  // The members whose jobs have not all ended, by id, with their names.
  Result<std::map<int64_t, std::string>> Awaited(int64_t class_id);
  Result<std::vector<FinalistRow>> Of(int64_t class_id);
  // Asks once more for finals that failed, as their runners lacked something, or were outdated.
  // Returns the new jobs; fewer if the queue has no room.
  Result<std::vector<int64_t>> AskAgain(int64_t class_id, Instant now);

 private:
  Result<void> Close(Class& of, Instant now);
  // Jobs that members' own runners have go back to the queue, for runners whose verdicts count.
  Result<void> TakeFromOwnRunners(const Class& of, Instant now);
  Result<std::vector<Contender>> Contenders(const Class& of);
  // Returns the final's job; nullopt if the queue has no room.
  Result<std::optional<int64_t>> Submit(const Job& best, Instant now);
  // Returns false if the queue has no room.
  Result<bool> Ask(const Class& of, const Contender& best, Instant now);

  Database& database_;
  Classes& classes_;
  Jobs& jobs_;
};

}  // namespace assay
