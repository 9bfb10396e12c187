// A search is a sequence of steps. A strategy asks for them; the engine does them and tells what
// came of each. Both live on in the archive (docs/search.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/verdict.h"
#include "propose/proposer.h"

namespace assay {

enum class StepKind {
  kPropose,  // ask the proposer
  kJudge,    // judge a candidate, as shortly as its verdict allows
  kConfirm,  // judge it again: new process, new values, all sizes
};

// "propose", "judge", "confirm".
std::string_view StepKindName(StepKind kind);

// The origin of a candidate or of a question.
struct Lineage {
  std::vector<std::string> parents;  // keys of steps
  std::string operation;             // "seed", "random", "mutate", "cross", "draft", "revise"
  std::string note;                  // one line: "ROWS=4 BLOCK=64", an idea; may be empty
};

struct Step {
  StepKind kind = StepKind::kJudge;
  std::string key;  // unique in its search, and the same each time that it is gone on with
  Lineage lineage;
  std::string name;    // of the candidate's file; its ending says the form
  std::string source;  // the candidate
  Prompt prompt;       // kPropose
};

// The step that judges this one's candidate again; its key is that one's with this prefix.
inline constexpr std::string_view kConfirmPrefix = "confirm/";
Step ConfirmationOf(const Step& step);

// One of them is set. `duplicate_of`: the verdict, or the error, is that of an earlier step.
struct StepResult {
  std::optional<Answer> answer;
  std::optional<Verdict> verdict;
  std::optional<Error> error;
  std::string duplicate_of;
  bool is_free = false;  // nothing was done for it
  // The verdict is one that the archive had, with this hash: of an earlier search.
  std::string known = {};
};

// The candidate's speed by a verdict, over its headline baseline.
struct Ratio {
  double value = 0;  // median; 0: wrong, or not timed
  double low = 0, high = 0;
};
Ratio RatioOf(const Verdict& verdict);

// Asks for the steps of a search.
class Strategy {
 public:
  virtual ~Strategy() = default;
  // The first steps, and those that follow on a result. A strategy is a function of what it hears:
  // told the same results in the same order, it asks for the same steps. No steps in hand and none
  // asked for: it has ended.
  virtual std::vector<Step> Begin() = 0;
  virtual std::vector<Step> Heard(const Step& step, const StepResult& result) = 0;
  // A person's wish; strategies that cannot heed it do nothing.
  virtual std::vector<Step> Steered(const std::string& /*action*/, const std::string& /*text*/) {
    return {};
  }
};

}  // namespace assay
