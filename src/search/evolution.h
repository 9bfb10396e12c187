// The strategy `evolve` with a proposer: ideas in English, each realised several ways; what is
// right is refined and crossed, what fails is repaired.
//
// Theory of operation. Candidates live on islands. An island keeps the best candidate of each cell;
// a cell is named by what was measured (the regime of the roofline, kernels, staging), and its
// candidate is displaced only by one whose interval lies above. A bandit (UCB1) chooses the
// operation by its gain a unit of cost. An island on which nothing improves for some time begins
// again from the best candidate of another one. A candidate with `//! tune` lines is tuned:
// variants of it are judged, without a question. A candidate that was judged elsewhere, at another
// size or on another machine, is judged here as it stands; then one is asked for that fits here.
// Ablation takes one trick out of an elite. The answer's sentence and the verdict stand among the
// ideas that were tried, so that later prompts know the trick's worth.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "search/points.h"
#include "search/random.h"
#include "search/step.h"
#include "search/writer.h"

namespace assay {

struct EvolutionTerms {
  int64_t lines_max = 256;  // questions in all: answers without code end a search, too
  int64_t width = 8;        // candidates in hand at a time
  int64_t islands = 3;
  int64_t realisations = 2;  // of an idea
  int64_t stagnation = 10;   // candidates without an improvement, until an island begins again
  bool cells = true;         // false: an island keeps its best candidate alone
  bool greedy = false;       // once a candidate is right, only refine
  uint64_t seed = 0;
  bool ablates = false;           // tricks of elites are taken out
  std::vector<Tried> ports = {};  // candidates with their verdicts from elsewhere
};

class Evolution : public Strategy {
 public:
  // The writer must outlive this object.
  Evolution(const Writer& writer, EvolutionTerms terms);

  std::vector<Step> Begin() override { return Fill(); }
  std::vector<Step> Heard(const Step& step, const StepResult& result) override;
  // "inject": an idea, which is realised next. "pin": the next question refines the candidate of
  // the step with this key. "prune": that candidate has no further children.
  std::vector<Step> Steered(const std::string& action, const std::string& text) override;

 private:
  struct Line {  // a question, and the candidate of its answer
    std::string operation;
    size_t island = 0;
    std::vector<size_t> parents;  // attempts
    std::string idea;
    double cost = 1;
    std::optional<size_t> attempt;
    TunePoint point = {};  // "tune": of the variant
    size_t origin = 0;     // "port": of `ports`
  };
  struct Island {
    std::map<std::string, size_t> elites;  // cell -> attempt
    double best = 0;                       // ratio
    int64_t without_gain = 0;
    std::optional<size_t> failed;  // the newest that can be repaired
  };
  struct Arm {
    double gain = 0, cost = 0;
    int64_t pulls = 0;
  };
  // A candidate of elsewhere, here.
  struct Ported {
    size_t origin = 0, island = 0;
    size_t attempt = 0;  // as it stands
    bool judged = false;
    int64_t asked = 0;
  };

  std::vector<Step> Fill();
  // Choices that a candidate left open, and its variants that were judged.
  struct Tuning {
    size_t root = 0;  // attempt
    TunerKnowledge known;
  };
  struct Variant {
    size_t tuning = 0;
    TunePoint point;
  };

  Step Ask(Line line);
  // The step that judges a candidate of elsewhere as it stands.
  Step Port(Line line);
  // Of the island, one that can be asked to fit better; null: none.
  Ported* OpenPort(size_t island);
  // The fastest elite of which no trick was taken out yet.
  std::optional<size_t> OpenAblation(const Island& island) const;
  // The step that judges a variant of the line's parent.
  Step Tune(Line line);
  Line NextLine();
  // An elite that can be tuned, the fastest; and the point to judge.
  std::optional<std::pair<size_t, TunePoint>> ChooseVariant(const Island& island,
                                                            StepRandom& random) const;
  // Notes what the attempt leaves open.
  void OpenTuning(size_t attempt);
  // The steps that an island allows.
  std::vector<std::string> OpenOperations(const Island& island, bool tunable);
  std::string ChooseOperation(const std::vector<std::string>& open, StepRandom& random) const;
  size_t RandomElite(const Island& island, StepRandom& random) const;
  std::vector<Step> HeardAnswer(Line& line, const Step& step, const StepResult& result);
  void HeardVerdict(const Line& line, const StepResult& result);
  void BeginAgain(size_t island);

  const Writer& writer_;
  const EvolutionTerms terms_;
  std::deque<Tried> attempts_;         // references to them stay good
  std::vector<double> ratios_;         // of the attempts
  std::map<std::string, Line> lines_;  // by the keys of their steps
  std::deque<Tuning> tunings_;
  std::map<size_t, Variant> variants_;  // of attempts with open values
  std::vector<Island> islands_;
  std::vector<Ported> ported_;
  std::set<size_t> ablated_;  // attempts
  std::map<std::string, Arm> arms_;
  std::deque<Line> queued_;  // that go before what the bandit chooses
  int64_t asked_ = 0, in_hand_ = 0;
  int64_t turn_ = 0;  // lines that were chosen, not queued
  double usd_ = 0;    // of all answers
};

}  // namespace assay
