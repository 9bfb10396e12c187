// Builds the prompts of a search from templates, within a budget of tokens (docs/prompts.md). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/machine_profile.h"
#include "model/problem.h"
#include "model/verdict.h"
#include "search/feedback.h"
#include "search/prompt_template.h"

namespace assay {

// kIdea asks for an idea in English; the others for a whole file.
enum class PromptOperator { kIdea, kImplement, kRefine, kRepair, kCrossover, kAblate, kPort };
std::string_view PromptOperatorName(PromptOperator which);  // "idea": its template's name too

struct PromptParent {
  std::string source;
  std::vector<FeedbackPart> feedback;
};

struct TriedIdea {
  std::string idea;     // one sentence
  std::string outcome;  // "wrong", "faster, 1.84x"
};

struct PromptSubject {
  const ProblemRequest& problem;
  // A line for each argument, as in a verdict or a worker's description: "input x float32[64, 8]".
  std::vector<std::string> signature = {};
  std::string form = "native";  // or "device", "python"
  std::string machine = {};     // MachineText()
  std::string target = {};      // TargetText()
  std::string idea = {};        // to realise
  // One of refine, repair and ablate, two of crossover; of port the candidate with its feedback
  // here, and there.
  std::vector<PromptParent> parents = {};
  std::string origin = {};            // OriginText() of port
  std::vector<TriedIdea> tried = {};  // oldest first
  std::string budget = {};            // "12 evaluations are left."
  bool by_call = false;               // the answer is an argument of a call: no text is asked for
};

struct BuiltPrompt {
  std::string system, text;
  int64_t tokens = 0;                // of both, about
  std::vector<std::string> dropped;  // parts that did not fit, in the order in which they went
};

// A token is taken to be four characters.
int64_t AboutTokens(std::string_view text);

// Drops the least useful parts until the prompt has at most `tokens_max` tokens: the second
// parent's feedback, the parents' "code", tried ideas (the oldest first), the worked pair, the
// machine, the parents' "bound", the target, the rest of budget. Errors (kUsage): an unknown form,
// a signature that cannot be read, too few parents, or what must stay takes more.
Result<BuiltPrompt> BuildPrompt(const PromptTemplates& templates, PromptOperator which,
                                const PromptSubject& subject, int64_t tokens_max);

// Returns the declaration that fits: "ASSAY_KERNEL(assay::Tensor<const float, 2> x, ...)", in the
// device form a line an argument, in Python the class, whose forward gets no gradients. Errors:
// kUsage.
Result<std::string> EntryOf(const std::vector<std::string>& signature, std::string_view form,
                            bool gradients = false);

// "AMD EPYC 7B13, 2 cores, 2 threads; caches ...": what a kernel's author must know of a machine.
std::string MachineText(const Machine& machine, const MachineProfile& profile);
// "at size tiny, ROWS = 8, on AMD EPYC 7B13, 1 thread (input x float32[8, 64], ...)": where a
// verdict was given.
std::string OriginText(const Verdict& verdict);
// "eager takes 4.00 ms a call; the bound by measured ceilings is 0.310 ms (memory)." Empty if no
// time is known.
std::string TargetText(const Verdict& verdict);

}  // namespace assay
