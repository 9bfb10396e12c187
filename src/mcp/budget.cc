#include "mcp/budget.h"

#include <fmt/format.h>

namespace assay {

Result<void> Budget::CheckSeconds() const {
  if (seconds_left() > 0) return {};
  return UsageError(
      fmt::format("the budget is spent: {:.0f} of {:.0f} s of judging. Nothing more is judged in "
                  "this session; problem_list, problem_get, job_status and explain still answer. "
                  "Report the best verdict you have",
                  seconds_, limits_.seconds));
}

Result<void> Budget::SpendCall() {
  if (calls_left() == 0)
    return UsageError(
        fmt::format("the budget is spent: {} of {} calls that judge. Nothing more is judged in "
                    "this session; problem_list, problem_get, job_status and explain still "
                    "answer. Report the best verdict you have",
                    calls_, limits_.calls));
  ASSAY_RETURN_IF_ERROR(CheckSeconds());
  ++calls_;
  return {};
}

}  // namespace assay
