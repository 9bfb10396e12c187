// The board's entries: a projection of the archive's verdicts, by sequence number. The archive is
// the truth: a projection that is lost is made anew.
//
// Theory of operation. Each verdict of the archive becomes a row of the table `board`, once, and
// all rows are held in memory: a page looks at tens of thousands. A verdict's terms have `served`:
// who asked for it and who ran it. Verdicts that others recorded in the archive, such as those of a
// search, have none: they have pages, and no rank. Judgements against another candidate, and spot
// checks, are not on the board. A verdict of the author's own runner is there, and has no rank.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "archive/store.h"
#include "model/verdict.h"
#include "score/attempt.h"
#include "serve/database.h"
#include "serve/types.h"

namespace assay {

// The author and the runner of a verdict, as its terms keep them.
struct ServedTerms {
  int64_t job = 0;
  JobKind kind = JobKind::kJudge;
  std::string author;
  Role role = Role::kStudent;
  std::string size;  // by the server's name
  std::string runner;
  bool own_runner = false;  // the author's own, which no mentor promoted
  bool own_constants = false;
};
// The size of a job's board: its name, or the constants of the job's own, as options.
std::string BoardSizeOf(const Job& job);

// The device alone, without its driver, so that a new driver makes no board of its own.
std::string DeviceOf(const Machine& machine);

std::string ServedTermsText(const ServedTerms& served);
// Terms of other programs have an empty author.
ServedTerms ReadServedTerms(const std::string& terms);

struct BoardRow {
  BoardEntry entry;
  Stage stage = Stage::kJudged;
  double certified = 0;           // the largest p that the pairs decide `faster` against
  bool prepares_weights = false;  // as in score/attempt.h
  bool own_runner = false;
  bool own_constants = false;      // of the job's, at no size of the problem's
  std::string foul_rule;           // that it broke; mostly empty
  size_t author = 0, problem = 0;  // their numbers in this process, from 0

  Attempt attempt() const;  // as far as scores ask
  // Somebody submitted it here.
  bool is_entry() const { return !entry.author.empty(); }
  // It has a rank, and a place in contention: a runner that the server trusts judged it.
  bool counts() const { return is_entry() && !own_runner; }
  // It is at a size that all have: whoever chooses the constants chooses how easy it is.
  bool counts_for_players() const { return counts() && !own_constants; }
};

BoardRow BoardRowOf(const Record& record, const Verdict& verdict, const ServedTerms& served);

class Board {
 public:
  Board(Database& database, Store& archive) : database_(database), archive_(archive) {}

  // Reads the rows that are kept. Call it once, first.
  Result<void> Load();
  // Takes what the archive has got since. Returns the sequence number up to which the rows are
  // true.
  Result<int64_t> CatchUp();
  const std::vector<BoardRow>& rows() const { return rows_; }  // by sequence
  // The values that entries have, to choose from.
  struct Choices {
    std::set<std::string> problems, sizes, precisions, devices;
  };
  const Choices& choices() const { return choices_; }
  // The latest row of that verdict; null: it is not on the board.
  const BoardRow* Find(const std::string& verdict) const;

 private:
  Result<void> Add(const Record& record);
  Result<void> Keep(const BoardRow& row);
  void Hold(BoardRow row);
  void Offer(const BoardEntry& entry);  // its values, to choose from

  Database& database_;
  Store& archive_;
  std::vector<BoardRow> rows_;
  std::unordered_map<std::string, size_t> authors_, problems_, verdicts_;
  Choices choices_;
  int64_t sequence_ = 0;
};

}  // namespace assay
