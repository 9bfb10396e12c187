// The strategy of a search, with the proposer and the writer that it needs.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "base/stop_token.h"
#include "propose/make_proposer.h"
#include "search/journal.h"
#include "search/proposals.h"
#include "search/step.h"
#include "search/writer.h"
#include "session/asked_terms.h"

namespace assay {

// Null where the strategy asks for no proposals, but `strategy`.
struct StrategyParts {
  std::unique_ptr<Proposer> proposer;
  std::unique_ptr<Writer> writer;
  std::unique_ptr<Proposals> proposals;  // goes before the proposer
  std::unique_ptr<Strategy> strategy;    // goes before the writer
};

// The proposer that varies `//! tune` lines, without a model.
inline constexpr const char* kTunerName = "tuner";

// The terms that a search recorded.
Result<AskedTerms> RecordedTerms(const std::string& terms);

// Errors: kUsage, kEnvironment.
Result<StrategyParts> MakeStrategy(const SearchSettings& settings, const ProposerOptions& options,
                                   StopToken stop);
// The same without the proposer: for a search whose answers are recorded.
Result<StrategyParts> MakeRecordedStrategy(const SearchSettings& settings, StopToken stop);

}  // namespace assay
