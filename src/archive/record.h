// A record of the archive: something that was judged, or how that ended. Each names the one before
// it by its hash, so that a change of any of them shows (docs/archive.md). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay {

enum class RecordKind {
  kReference,  // content: a problem's file
  kCandidate,  // content: a candidate's source
  kVerdict,    // content: a verdict's JSON
  kFailure,    // content: the error that stands in a verdict's place, as JSON
  kRun,        // content: the problems of a run, as JSON
  kNote,       // content: text
  kSearch,     // content: the settings of a search, as JSON
  kStep,       // content: what a search is about to do, as JSON; source: a candidate to judge
  kResult,     // content: what came of a step, as JSON
  kSteer,      // content: what a person asks of a search, as JSON
  kEpisode,    // content: an event of an episode of training, as JSON
};

std::string_view RecordKindName(RecordKind kind);
std::optional<RecordKind> RecordKindFromName(std::string_view name);

// Words by which a record is found. Empty: it has none.
struct RecordFacts {
  RecordKind kind = RecordKind::kNote;
  std::string name;     // a candidate's file, a run's folder, a search's step, or an episode
  std::string id;       // a verdict's, a search's, or an environment's
  std::string problem;  // its name
  std::string outcome;  // a verdict's, as in JSON
};

// A record to append, with the bytes that it is about.
struct NewRecord {
  RecordFacts facts;
  std::string content;
  std::string source = {};  // of the candidate that was judged; empty: none
  std::string terms = {};   // of the command, as JSON; empty: none
  bool once = false;        // left out if a record of this kind has this content
};

// A record as it was kept. Bytes stand there by their SHA-256.
struct Record {
  int64_t sequence = 0;  // from 1, without gaps
  RecordFacts facts;
  std::string time;                    // ISO 8601, UTC; need not ascend
  std::string content, source, terms;  // hashes; source and terms may be empty
  std::string parent;                  // hash of the record before; of the first: kFirstParent
  std::string hash;                    // RecordHash
};

inline constexpr std::string_view kFirstParent =
    "0000000000000000000000000000000000000000000000000000000000000000";

// SHA-256 over all fields but `hash`, each with its length before it.
std::string RecordHash(const Record& record);

}  // namespace assay
