// Readings for pages and programs alike: the board's question, verdicts with their sources.
#pragma once

#include <optional>
#include <string>

#include "archive/record.h"
#include "model/verdict.h"
#include "web/route.h"

namespace assay {

inline constexpr const char* kBundleSchemaName = "assay.bundle/1";

// p, problem, tier, by, precision, size, processor (or device). Errors (kUsage): a value is none.
Result<BoardQuery> BoardQueryOf(Hall& hall, const WebRequest& request);
// "1", "2": the levels that problems have.
std::vector<std::string> TiersOf(const Catalogue& catalogue);

// A verdict of the archive as this reader may see it.
struct ReadVerdict {
  Record record;
  Verdict verdict;
  ServedTerms served;
  std::string source;  // empty: it was not kept, or is hidden
  // Hidden until this deadline, seconds since 1970: the source, what was compiled of it, and words
  // that may show parts of it, such as a compiler's. 0: shown.
  int64_t hidden_until_s = 0;
};
// nullopt: there is none of that id. Errors: the archive cannot be read.
Result<std::optional<ReadVerdict>> FindVerdict(Hall& hall, const std::string& id,
                                               const WebRequest& request);

// Whether words about a member's job that may show parts of its source are hidden from this reader.
Result<bool> HidesWordsOf(Hall& hall, const Job& job, const WebRequest& request);
inline constexpr const char* kHiddenWords = "its reason is hidden until the deadline";
// An event of a job whose words are hidden: what happened, without any text.
std::string WithoutWords(const std::string& event);

// A judgement of b's candidate against a's, pair by pair: the latest that counts.
struct PairedVerdict {
  std::string id;
  BaselineResult result;
};
Result<std::optional<PairedVerdict>> FindPaired(Hall& hall, const ReadVerdict& a,
                                                const ReadVerdict& b);

// The speeds of two verdicts by their intervals: "b is faster", "a is faster", "no difference can
// be seen", or "they cannot be compared": on other machines, sizes or problems.
std::string UnpairedDifference(const Verdict& a, const Verdict& b);

// The searches and runs that the archive has, newest first.
Result<std::vector<Record>> RunsOf(Hall& hall, int64_t limit);

}  // namespace assay
