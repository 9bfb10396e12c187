// The worklogs of a class as one HTML page. Pure.
#pragma once

#include <span>
#include <string>

#include "worklog/class_list.h"

namespace assay {

// A row a worklog, by author; marks, both sides' best, and what is suspicious. No ranks: speed
// earns nothing.
std::string RenderClassPage(std::span<const ClassEntry> entries);

}  // namespace assay
