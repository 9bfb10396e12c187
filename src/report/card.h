// The card: a verdict for people, in a terminal. Outcome first, then the two gates, what it rests
// on, what to do next.
#pragma once

#include <string>

#include "model/verdict.h"
#include "report/frame.h"

namespace assay {

// Lines that each end in a newline; all but the last (the next command) fit style.width columns.
// For any verdict, the text has no control characters besides those newlines and, with
// colour, SGR codes of its own.
std::string RenderCard(const Verdict& verdict, const CardStyle& style);
// The same without the next command.
std::string RenderCardAlone(const Verdict& verdict, const CardStyle& style);

}  // namespace assay
