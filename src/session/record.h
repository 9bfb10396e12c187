// Fills in the parts of a verdict from a judgement's facts and results.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "model/problem.h"
#include "model/verdict.h"
#include "session/terms.h"
#include "speed/gate2_run.h"

namespace assay {

ProblemRecord RecordOf(const ProblemRequest& request, const ProblemDescription& description);
// The same of a problem that was estimated and not called.
ProblemRecord RecordOf(const ProblemRequest& request, const WorkAccount& account);

// The problem and the work of a call, as a verdict has them.
struct ProblemFacts {
  ProblemRecord record;
  Work work;
};
ProblemFacts FactsOf(const ProblemRequest& request, const Oracle& oracle);
ProblemFacts FactsOf(const ProblemRequest& request, const ProblemEstimate& estimate);

// Returns a verdict with all facts before the gates: request, candidate, problem, machine,
// software.
Verdict NewVerdict(const SessionTerms& terms, const BuiltCandidate& candidate, ProblemFacts problem,
                   const PythonRuntime& python, uint64_t seed, int threads, const Gpu* gpu);

// Returns a note that names the problem's changed constants that a Python candidate's file assigns
// at top level, too: they are set in the candidate as well, so the judged program differs from the
// file. Empty if there are none.
std::string ConstantsNote(const std::string& source, const std::map<std::string, std::string>& set);

// Returns the headline baseline's roofline, by the ceilings of the judged processor or GPU; nullopt
// if `machine` has none. `operands`: the dtype of what is multiplied; empty: the problem's own.
// `gpu`: null on the CPU.
std::optional<Roofline> RooflineOf(const Verdict& verdict, const MachineProfile& machine,
                                   const WorkAccount& account, const std::string& operands,
                                   const Gpu* gpu);

// Explains a correct candidate's outcome in one sentence. `opponent` names the headline baseline or
// the other candidate.
std::string OutcomeMessage(Outcome outcome, const Speed& speed, const std::string& opponent);

// Puts gate 2's result against a baseline into the verdict, which has passed gate 1. Returns true
// if the verdict is final: a timed call was wrong or a rule was broken.
bool ConcludeGate2(Gate2Result result, const ProblemRequest& problem, const std::string& baseline,
                   Verdict* verdict);

// Adds the result of the baseline that is hardest to beat, once more, as kBestBaseline. `left_out`:
// baselines that failed, by reason.
void AddBest(const std::map<std::string, std::vector<std::string>>& left_out, Speed* speed);

// Adds the draws of another size, constants `set`, to the verdict's; a failure among them is the
// verdict's.
void AddDraws(Correctness other, const std::map<std::string, std::string>& set,
              Correctness* correctness);

// Says that get_inputs() gives the same values under every seed, and whose values were used; empty:
// it does not.
std::string NoteOfSameValues(const ProblemDescription& description);

// Says that the reference ran in float64 on pieces of the batch, or not at all; empty: it ran on
// the whole.
std::string NoteOfFloat64(const ProblemDescription& description);

// Says that what forward changes in its module was not compared; empty: it changes nothing, or it
// was.
std::string NoteOfState(const ProblemDescription& description, const ProblemRequest& problem,
                        CandidateForm form);

// Says how many draws were not made for the time that they would take; empty: none.
std::string NoteOfDrawsForTime(const std::vector<DrawRecord>& draws);

// Returns a note on draws that passed without some elements; empty if there are none.
std::string NoteOfLeftOut(const std::vector<DrawRecord>& draws);

}  // namespace assay
