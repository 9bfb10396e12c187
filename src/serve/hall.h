// All that a server keeps, in one place, for one thread at a time: a handler holds the mutex while
// it uses anything else here, and is short.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "archive/store.h"
#include "model/machine_profile.h"
#include "serve/accounts.h"
#include "serve/board.h"
#include "serve/board_texts.h"
#include "serve/catalogue.h"
#include "serve/database.h"
#include "serve/jobs.h"
#include "serve/leases.h"
#include "serve/ranking.h"
#include "serve/spot_checks.h"

namespace assay {

struct HallOptions {
  std::string folder;
  std::string archive = {};  // URL of a PostgreSQL database; empty: a file in the folder
  QueueLimits queue = {};
  LeaseLimits leases = {};
  double spot_checks = 0;       // share of promoted runners' verdicts that are judged again, 0 to 1
  double verdict_seconds = 0;   // for gate 2 of each candidate; 0: the runner's own
  MachineProfile machine = {};  // of this machine
};

// An account's present limits for jobs.
struct SubmitTerms {
  QueueLimits limits;
  std::string refusal;  // why nothing may be, such as a deadline that is over; empty: something may
  int64_t deadline_s = 0;  // seconds since 1970; 0: none
};

class Hall {
 public:
  // Opens the folder's database and archive, and finishes what the last process left. Errors: as
  // Database::Open and OpenHallArchive.
  static Result<std::unique_ptr<Hall>> Open(HallOptions options, Catalogue catalogue);

  std::mutex mutex;

  Database& database() { return *database_; }
  Store& archive() { return *archive_; }
  const Catalogue& catalogue() const { return catalogue_; }
  const MachineProfile& machine() const { return options_.machine; }
  double verdict_seconds() const { return options_.verdict_seconds; }
  Accounts accounts() { return Accounts(*database_); }
  Jobs jobs() { return Jobs(*database_, options_.queue); }
  Leases& leases() { return *leases_; }
  SpotChecks spot_checks() { return SpotChecks(*database_, jobs(), options_.spot_checks); }
  // True up to the archive's last verdict.
  Result<const Board*> CaughtUpBoard();

  // Rules of classes, which replace these: all limits are the server's, and members see all
  // sources.
  std::function<Result<SubmitTerms>(const Account&, Instant)> submit_terms;
  // Until when the source of an entry is hidden from the viewer, seconds since 1970; 0: it is
  // shown.
  std::function<Result<int64_t>(const Account& viewer, const BoardEntry&, Instant)>
      source_hidden_until_s;

  // Ends a job by a runner's verdict, and puts it into the archive. Errors (kUsage): the text is no
  // verdict, or one on another candidate or problem.
  Result<Ending> End(int64_t job, const std::string& lease, const std::string& verdict,
                     Instant now);
  // Puts verdicts that ended their jobs into the archive, if an earlier try failed.
  Result<void> Settle();

  // Ranks of a query, as long as the archive stays as it is the same ones.
  Result<std::shared_ptr<const PlayerBoard>> Standings(const BoardQuery& query);
  Result<std::shared_ptr<const std::vector<ProblemBoard>>> BoardsOf(const BoardQuery& query);
  // A text that `make` writes of the board alone, kept likewise. `name` tells texts of one query
  // apart. Texts that were not asked for lately are dropped.
  Result<std::shared_ptr<const std::string>> TextOfBoard(
      const std::string& name, const BoardQuery& query,
      const std::function<Result<std::string>()>& make);

 private:
  explicit Hall(HallOptions options, Catalogue catalogue)
      : options_(std::move(options)), catalogue_(std::move(catalogue)) {}
  Result<void> CheckVerdict(const Job& job, const std::string& text, std::string* id,
                            std::string* outcome);
  Result<void> Archive(const Leases::KeptVerdict& kept);
  // Notes what a spot check found; nothing for other jobs.
  Result<void> NoteCheck(const Job& job, const Verdict& again);
  template <typename View>
  struct Kept {
    BoardQuery query;
    std::shared_ptr<const View> view;
  };
  template <typename View>
  Result<std::shared_ptr<const View>> Remembered(
      std::vector<Kept<View>>* kept, const BoardQuery& query,
      const std::function<View(const std::vector<BoardRow>&)>& make);

  // Drops views of an earlier state of the archive.
  Result<void> CatchUpViews();

  HallOptions options_;
  Catalogue catalogue_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<Store> archive_;
  std::optional<Leases> leases_;
  std::optional<Board> board_;
  int64_t views_sequence_ = -1;  // of the archive, when these were made
  std::vector<Kept<PlayerBoard>> standings_;
  std::vector<Kept<std::vector<ProblemBoard>>> boards_;
  BoardTexts texts_;
};

}  // namespace assay
