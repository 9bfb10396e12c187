// The sheet that goes back with a worklog: marks, notes, and what each line of the rubric found, as
// Markdown. Pure.
#pragma once

#include <string>

#include "worklog/rubric.h"
#include "worklog/worklog.h"

namespace assay {

// `grade`: of this worklog with these marks.
std::string RenderMarkSheet(const Worklog& worklog, const Grade& grade, const Marks& marks);

}  // namespace assay
