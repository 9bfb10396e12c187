// Looks at the calls of a native candidate on the processor once its verdict is made: page faults,
// the processor's counters, and the time at half the size and on one thread, which tell overhead,
// traffic and arithmetic apart. Each look has a host of its own, in the candidate's sandbox.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "correctness/other_size.h"
#include "session/tool_facts.h"
#include "session/workbench.h"

namespace assay {

class CallProbes {
 public:
  // Adds what was seen to a correct candidate's verdict, or why nothing was seen. Trouble of its
  // hosts is in the record, too. Errors: kInterrupted.
  Result<void> Add(const ToolSetup& setup, Verdict* verdict);

 private:
  // The problem at half the size, made at the first call; null: there is none.
  OtherSize* Smaller(Workbench& bench);
  static Result<std::unique_ptr<OtherSize>> MakeSmaller(Workbench& bench);
  void AddSmaller(const ToolSetup& setup, ProbeRecord* probe);

  bool asked_ = false;  // for the smaller size
  std::unique_ptr<OtherSize> smaller_;
};

// Why a candidate's calls are not looked at; empty: they are.
std::string WhyNotLookedAt(CandidateForm form, const Verdict& verdict);

// Returns "--set ROWS=32 --set COLUMNS=64" as constants, over `set`; none if a value needs quotes.
std::map<std::string, std::string> SetOfOptions(const std::string& options,
                                                std::map<std::string, std::string> set);

}  // namespace assay
