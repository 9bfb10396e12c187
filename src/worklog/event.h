// The events of a match, as the notes of the archive that prove them (docs/worklog.md). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace assay {

// The columns of a match.
enum class Player {
  kHand,      // the author
  kModel,     // a language model, alone
  kTogether,  // a language model that the author steered
};
std::string_view PlayerName(Player player);  // "hand", "model", "together"
std::optional<Player> PlayerFromName(std::string_view name);

struct MatchBegun {
  std::string worklog;         // its id
  std::string problem;         // its name
  std::string reference_hash;  // SHA-256 of the problem's file
  std::string terms;           // TermsText, with the problem: of every judgement of the match
  int tier = 2;
};

struct Predicted {
  std::string regime;  // "memory", "compute", "overhead"
  double ratio = 0;    // expected speedup of the author's last version
  std::string reason;
};

// A prompt that is frozen: the answers to it are comparable.
struct SeriesBegun {
  int number = 0;  // from 1
  Player player = Player::kModel;
  std::string proposer;  // as named by the user; "pasted" for an answer that a person brought
  std::string system, prompt;
  std::string provenance;  // who or what answers; may be empty
};

struct Answered {
  int series = 0;
  int number = 0;  // from 1, over the match
  // Of a turn after the first: the prompt that the tool wrote from the verdict before; else empty.
  std::string prompt;
  std::string model, finish, text;
  std::string trouble;  // why no candidate is in it; empty: one is
  int64_t tokens_in = 0, tokens_out = 0;
};

// Recorded before the version is measured.
struct Attempted {
  std::string version;  // "v1" by hand, "m1" by the model, "t1" together
  Player player = Player::kHand;
  std::string file;  // the source's name in the worklog's folder
  std::string source_hash;
  std::string why;
  int answer = 0;  // that the source is from; 0: none
};

struct Measured {
  std::string version;
  std::string verdict_hash;  // of the verdict's record; empty: none
  std::string trouble;       // in the verdict's place
};

// A verdict on the reference that assay judge made beside the versions, to learn something.
struct Besides {
  std::string verdict_hash;  // of the verdict's record
  std::string why;
};

// Two versions that were judged against each other.
struct Dueled {
  std::string version, other;
  std::string verdict_hash;  // of the verdict on `version` against `other`; empty: none
  std::string trouble;       // in the verdict's place
};

using MatchEvent = std::variant<MatchBegun, Predicted, SeriesBegun, Answered, Attempted, Measured,
                                Besides, Dueled>;

// An event and its place in the match.
struct MatchNote {
  MatchEvent event;
  std::string previous;              // hash of the match's note before; of the first: empty
  std::vector<std::string> outside;  // ids of verdicts on the reference that are news since then
};

// As the content of a note's record, on one line.
std::string MatchNoteToJson(const MatchNote& note);
// Errors (kUsage): not such a note.
Result<MatchNote> MatchNoteFromJson(std::string_view text);
// The hash of the verdict that goes with an event; empty: none does.
std::string VerdictHashOf(const MatchEvent& event);
// A word for the record's name: "worklog/predicted".
std::string MatchNoteName(const MatchEvent& event);

}  // namespace assay
