// The facts of a match in words, for all of its reports. Pure.
#pragma once

#include <string>
#include <vector>

#include "worklog/worklog.h"

namespace assay {

struct VersionRow {
  std::string name, outcome, time, speedup, interval, peak;  // "-" where there is none
};
VersionRow RowOf(const VersionFact& version);

// "compiled, correct, not faster": the gates in their order, as far as it came.
std::string GatesText(const VersionFact& version);
// "predicted 2.00x, measured 2.31x (2.25x to 2.38x): the interval lies above".
std::string PredictionText(const Match& match, const VersionFact& version);
// "v3 (2.31x) against m2 (2.80x): 0.83x, 0.80x to 0.86x: the model is faster". Empty: there is
// nothing to compare.
std::string RaceText(const Match& match, Player one, Player other);
std::string_view PlayerTitle(Player player);  // "by hand", "the model", "together"
// "1 of 4 answers passed both gates; the first try did not compile".
std::string FirstTryText(const Match& match, const SeriesFact& series);
std::string TierText(int tier);  // "tier 2: fusion"
// The machine of the first verdict; empty: none.
std::string MachineLine(const Match& match);
// The last version of the same player before; null: none.
const VersionFact* Before(const Match& match, const VersionFact& version);

}  // namespace assay
