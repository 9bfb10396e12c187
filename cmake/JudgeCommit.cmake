# Writes OUT, a header with the last commit that changed the judge in SOURCE, and '+' where it was
# changed since; empty where there is no git. Untouched where nothing of that has changed.
set(parts src host include)
execute_process(COMMAND git -C ${SOURCE} log -1 --format=%h -- ${parts}
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
execute_process(COMMAND git -C ${SOURCE} status --porcelain -- ${parts}
  OUTPUT_VARIABLE changed ERROR_QUIET)
if(commit AND changed)
  string(APPEND commit "+")
endif()
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT [[
// Written by cmake/JudgeCommit.cmake.
#pragma once

#include <string_view>

namespace assay {
inline constexpr std::string_view kJudgeCommit = "@commit@";
}
]])
