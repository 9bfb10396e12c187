// The findings of a search, as text and as lines of JSON (docs/search.md). Pure.
#pragma once

#include <string>
#include <vector>

#include "search/engine.h"
#include "search/journal.h"
#include "search/outcome_table.h"
#include "search/replay.h"

namespace assay {

// "2.31x (2.25x to 2.38x)".
std::string RatioText(const Ratio& ratio);

// The line of progress: "12 of 60 evaluations, 5 s | faster 8, wrong 2 | best 2.31x (...)".
std::string ProgressText(const SearchView& view);

// The end of a search: its result, the outcomes, the best so far by evaluations, what it took.
std::string RenderEnd(const OutcomeTable& table, const BudgetLedger& ledger);

// Lines of JSON, with their ends.
std::string BeginEvent(const SearchSettings& settings, bool resumed);
std::string ResultEvent(const Step& step, const StepResult& result, const SearchView& view);
std::string EndEvent(const OutcomeTable& table, const BudgetLedger& ledger, bool budget_ended);

// A replay, in words and as a line of JSON.
std::string RenderReplay(const std::string& search, const ReplayReport& report);
std::string ReplayEvent(const std::string& search, const ReplayReport& report);

// The lineage of a recorded search: each step under its first parent.
std::string RenderTree(const Journal& journal);

}  // namespace assay
