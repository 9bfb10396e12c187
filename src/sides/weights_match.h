// How a Python candidate's weights were matched with the reference's, as its host reports it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "wire/types.h"

namespace assay {

struct WeightsMatch {
  // By the numbers of host/python/assay_host/weights.py.
  enum class How : uint64_t { kByName, kByOrder, kFromSeed, kNoWeights, kByShape };
  How how = How::kNoWeights;
  uint64_t left_over = 0;            // tensors of the candidate that stand for none
  uint64_t missing_count = 0;        // parameters of the reference that it has not
  std::vector<std::string> missing;  // the first of them
  bool lacks_floats = false;         // others never change, and the missing ones hold the same
  bool is_guess = false;             // by order, though two have one shape: they may be swapped

  // The reference's weights could not be set in it for sure.
  bool differs() const { return lacks_floats || is_guess; }
};

// Reads a host's reply to kLoad, of which nothing is believed: a wrong one harms its candidate.
WeightsMatch ReadWeightsMatch(std::span<const uint64_t> reply, const wire::Plan& plan);

// Returns the note for the card; empty if all is as in the reference.
std::string NoteOf(const WeightsMatch& match);

// Returns the missing parameters for a sentence: "a, b and 3 more".
std::string MissingInWords(const WeightsMatch& match);

}  // namespace assay
