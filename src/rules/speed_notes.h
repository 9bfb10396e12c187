// Notes on decisions of the speed gate: copies of results, and blocks that are too short. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "model/verdict.h"

namespace assay {

// Returns true if the candidate is faster than a reference that did without the copy of its
// results. Times of one call [ns].
bool IsFasterWithoutCopy(double reference_ns, double copy_ns, double candidate_ns,
                         double threshold);

// Returns at least how many times as fast the candidate is, whatever leaving out its copy saves.
// Times of one call [ns], both with the copy.
double SpeedupBesideCopies(double reference_ns, double copy_ns, double candidate_ns);

// Both sides copy their results since the candidate uses their memory again: returns why it is not
// called `faster`. Code in Python could leave out the candidate's copy. Empty if it gains more than
// that can save. Times of one call [ns].
std::string NoteOfReusedMemory(double reference_ns, double copy_ns, double candidate_ns,
                               double threshold);

// Both sides copy their results within the clock, the candidate by code that it could have
// replaced: returns a note on `faster`. Empty if the candidate gains more than a copy can save.
// Times of one call [ns].
std::string NoteOfCopies(double reference_ns, double copy_ns, double candidate_ns,
                         double threshold);

// The candidate alone copies its results, since it uses their memory again and its opponent is
// native: returns why it is not
// called `slower`. Without that copy, as its host says how long it takes, it may not be. Empty if
// it stays slower. Times of one call [ns].
std::string NoteOfOwnCopies(double reference_ns, double candidate_ns, double copy_ns,
                            double threshold);

// Returns why a candidate's code on a device is not called `faster` by blocks of so many calls,
// which last `block_ns` for its opponent: it could have computed a whole block before the clock.
// Empty if blocks last long enough.
std::string NoteOfShortBlocks(uint32_t calls, double block_ns);

// Returns what a win over this baseline says little about: calls that do less work than it takes to
// call, or a baseline that reaches a hundredth of the bound, as loops in Python do. Empty if there
// is nothing of the kind. `bound_ns`: by the machine's ceilings; 0 if they were not measured, then
// a slow core stands in for them.
std::string NoteOfBaseline(const Work& work, double bound_ns, double reference_ns);

// Returns why a candidate is not called `slower`: it is so by charges alone.
std::string NoteOfCharges(double speedup_without);

}  // namespace assay
