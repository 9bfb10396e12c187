// The mechanisms that explain why one kernel is faster than another, and what a verdict shows of
// one. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "model/verdict.h"

namespace assay {

enum class Mechanism {
  kMemoryMovement,
  kFusion,
  kTiling,
  kVectorising,
  kParallelism,
  kTensorCores,
  kAsynchronousCopies,
  kLatencyHiding,
  kLessWork,
};

struct MechanismFacts {
  Mechanism mechanism;
  std::string_view name;     // as typed: "tensor-cores"
  std::string_view meaning;  // in a phrase
};
std::span<const MechanismFacts> AllMechanisms();
const MechanismFacts& FactsOf(Mechanism mechanism);
std::optional<Mechanism> MechanismFromName(std::string_view name);
std::string MechanismNames();     // with commas
std::string MechanismMeanings();  // a line each, for help

// The judge's evidence for a claim.
struct Evidence {
  enum class Kind { kFound, kAgainst, kUnknown } kind = Kind::kUnknown;
  std::string text;  // in one or two sentences, with numbers
};

// `verdict`: of the version that the claim is about; `source`: its text.
Evidence EvidenceFor(Mechanism mechanism, const Verdict& verdict, std::string_view source);

}  // namespace assay
