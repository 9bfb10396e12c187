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
// "115efb120551: v6 against v5: unsettled, 1.17x (0.866x to 1.55x)". Empty: its verdict is missing.
std::string BesidesText(const Match& match, const BesidesFact& besides);
// The same for a duel, or why it has no verdict.
std::string DuelText(const Match& match, const DuelFact& duel);
std::string_view PlayerTitle(Player player);  // "by hand", "the model", "together"
// "1 of 4 answers passed both gates; the first try did not compile".
std::string FirstTryText(const Match& match, const SeriesFact& series);
// Without the folders of a path on the author's machine: "inbox:answers".
std::string ProposerText(const std::string& proposer);
// The rules of the prompt that the model got first: what stands below its "# Rules". Empty: none.
std::string RulesText(const Match& match);
std::string TierText(int tier);  // "tier 2: fusion"
// The machine of the first verdict; empty: none.
std::string MachineLine(const Match& match);
// The last version of the same player before; null: none.
const VersionFact* Before(const Match& match, const VersionFact& version);

}  // namespace assay
