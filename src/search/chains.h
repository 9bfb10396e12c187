// The strategies `sample` and `refine`: independent chains of turns. Each turn asks the proposer,
// and judges the candidate of its answer; the next turn of the chain sees what came of the turns
// before. Chains of one turn are samples.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "search/step.h"
#include "search/writer.h"

namespace assay {

struct ChainTerms {
  int64_t chains = 4, turns = 4;
  int64_t width = 8;  // chains in hand at a time
  uint64_t seed = 0;
};

class Chains : public Strategy {
 public:
  // The writer must outlive this object.
  Chains(const Writer& writer, ChainTerms terms) : writer_(writer), terms_(terms) {}

  std::vector<Step> Begin() override;
  std::vector<Step> Heard(const Step& step, const StepResult& result) override;
  // "inject": the text is an idea, which the chains that begin later realise first, one each.
  // "prune": the chain with this number, or that of a step with this key, has no further turns.
  // "pin": chains that begin later refine the candidate of the step with this key.
  std::vector<Step> Steered(const std::string& action, const std::string& text) override;

 private:
  struct Chain {
    std::vector<Tried> turns;
    bool pruned = false;
  };

  std::vector<Step> StartChains();
  Step Turn(int64_t number);
  // Of a step with this key; null: it made none.
  const Tried* FindAttempt(const std::string& key) const;
  // After a turn: the next one, or another chain.
  std::vector<Step> After(int64_t number);

  const Writer& writer_;
  const ChainTerms terms_;
  std::map<int64_t, Chain> chains_;  // that were begun
  int64_t open_ = 0;                 // of these, with turns left
  std::vector<std::string> ideas_;   // injected, not used yet
  std::string pinned_;               // a step's key
};

}  // namespace assay
