// Parts of a verdict that follow from what the judgement knows.
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

// Everything that is known before the gates: what was asked, of whom, and with what.
Verdict NewVerdict(const SessionTerms& terms, const BuiltCandidate& candidate, const Oracle& oracle,
                   const PythonRuntime& python, uint64_t seed, int threads, const Gpu* gpu);

// Which of the problem's changed constants a Python candidate assigns at its top level too: they
// were set in it, and the judged program is the file with them. Empty where there are none.
std::string ConstantsNote(const std::string& source, const std::map<std::string, std::string>& set);

// The headline baseline's roofline, by the ceilings of what the problem was judged on; nothing
// where `machine` has none of it. `gpu`: null on the CPU.
std::optional<Roofline> RooflineOf(const Verdict& verdict, const MachineProfile& machine,
                                   const WorkAccount& account, const Gpu* gpu);

// Why a correct candidate has this outcome, in one sentence. `opponent` names the headline baseline
// or the other candidate.
std::string OutcomeMessage(Outcome outcome, const Speed& speed, const std::string& opponent);

// Puts what gate 2 found beside a baseline into the verdict, whose gate 1 has passed. True: the
// verdict is final, as a timed call was wrong or a rule was broken.
bool ConcludeGate2(Gate2Result result, const ProblemRequest& problem, const std::string& baseline,
                   Verdict* verdict);

// Adds the result of the baseline that is hardest to beat, once more as kBestBaseline. `left_out`:
// those that failed, by why they did.
void AddBest(const std::map<std::string, std::vector<std::string>>& left_out, Speed* speed);

// Adds the draws of another size to the verdict's; a failure among them is its failure.
void AddDraws(Correctness other, const std::map<std::string, std::string>& set,
              Correctness* correctness);

// What a reader should know of draws that passed but for some elements; empty: none did.
std::string NoteOfLeftOut(const std::vector<DrawRecord>& draws);

}  // namespace assay
